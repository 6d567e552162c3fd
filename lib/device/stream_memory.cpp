// SPDX-License-Identifier: BSD-3-Clause
#include "device/stream_memory.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>

#include "base/detail/private_api.hpp"
#include "rankmesh/device/captured_graphs.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/stream.hpp"

namespace rankmesh::device {
namespace {

cudaStream_t handle_of(StreamRef stream) { return static_cast<cudaStream_t>(stream.native()); }

// The pools live as long as the process: work may still use their memory when static objects end.
struct Pools {
  std::mutex mutex;
  std::map<int, cudaMemPool_t> by_device;
};

Pools& pools() {
  static Pools* const made = new Pools;
  return *made;
}

cudaMemPool_t make_pool(int device) {
  const RelaxedCaptureMode relaxed;  // the first operation may be captured
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
  // By default, each synchronisation returns the unused memory to the device, and the next
  // allocation has to map it again.
  std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
        "cudaMemPoolSetAttribute");
  // The pool must not make a stream wait until another stream frees memory. The other stream may
  // contain an NCCL operation whose peer waits for this stream.
  int is_allowed = 0;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &is_allowed),
        "cudaMemPoolSetAttribute");
  return pool;
}

cudaMemPool_t current_pool() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock{pools().mutex};
  cudaMemPool_t& pool = pools().by_device[device];
  if (pool == nullptr) pool = make_pool(device);
  return pool;
}

}  // namespace

RANKMESH_PRIVATE_API void* allocate_in_order(std::size_t bytes, StreamRef stream) {
  void* memory = nullptr;
  if (bytes > 0)
    check(cudaMallocFromPoolAsync(&memory, bytes, current_pool(), handle_of(stream)),
          "cudaMallocFromPoolAsync");
  return memory;
}

RANKMESH_PRIVATE_API void free_in_order(void* memory, StreamRef stream) {
  if (memory != nullptr) check(cudaFreeAsync(memory, handle_of(stream)), "cudaFreeAsync");
}

RANKMESH_PRIVATE_API bool is_in_capture(StreamRef stream) { return is_captured(stream); }

RANKMESH_PRIVATE_API void wait_for(StreamRef stream) {
  Stream::adopt(handle_of(stream)).wait(Deadline{default_timeout()});
}

void trim_pools() noexcept {
  const RelaxedCaptureMode relaxed;  // another thread may capture
  const std::lock_guard lock{pools().mutex};
  for (const auto& [device, pool] : pools().by_device) (void)cudaMemPoolTrimTo(pool, 0);
}

}  // namespace rankmesh::device
