// SPDX-License-Identifier: BSD-3-Clause
#include "device/stream_memory.hpp"

#include <cstdint>
#include <exception>
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

// Whether CUDA copies rows at this distance in two dimensions. It refuses distances above
// cudaDevAttrMaxPitch, which is 2^31 - 1 on all devices.
bool is_pitch(std::int64_t step, std::int64_t bytes) {
  return bytes <= step && step <= std::numeric_limits<std::int32_t>::max();
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

RANKMESH_PRIVATE_API void require_no_capture(StreamRef stream) {
  if (is_in_capture(stream))
    throw UsageError{"memory that is kept cannot be allocated while its stream is captured",
                     "make the call once before the capture, or call reserve()"};
}

RANKMESH_PRIVATE_API void* allocate_for_all_streams(std::size_t bytes) {
  const Stream stream = Stream::create();
  void* memory = allocate_in_order(bytes, stream);
  wait_for(stream);
  return memory;
}

RANKMESH_PRIVATE_API void free_after_device(void* memory) noexcept {
  if (memory == nullptr) return;
  try {
    drain(Deadline{default_timeout()});  // cudaFree does not wait for the uses of a pool's memory
  } catch (const std::exception&) {
    return;
  }
  detail::release(memory);
}

RANKMESH_PRIVATE_API void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes > 0) check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return memory;
}

RANKMESH_PRIVATE_API void free_pinned(void* memory) noexcept {
  if (memory != nullptr) (void)cudaFreeHost(memory);
}

RANKMESH_PRIVATE_API void copy_in_order(void* to, const void* from, std::size_t bytes,
                                        detail::Direction direction, StreamRef stream) {
  if (bytes == 0) return;
  const auto kind =
      direction == detail::Direction::to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  check(cudaMemcpyAsync(to, from, bytes, kind, handle_of(stream)), "cudaMemcpyAsync");
}

RANKMESH_PRIVATE_API void copy_rows_in_order(std::byte* to, std::int64_t to_step,
                                             const std::byte* from, std::int64_t from_step,
                                             std::int64_t bytes, std::int64_t rows,
                                             StreamRef stream) {
  if (rows > 1 && is_pitch(to_step, bytes) && is_pitch(from_step, bytes))
    return check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_step), from,
                                   static_cast<std::size_t>(from_step),
                                   static_cast<std::size_t>(bytes), static_cast<std::size_t>(rows),
                                   cudaMemcpyDeviceToDevice, handle_of(stream)),
                 "cudaMemcpy2DAsync");
  for (std::int64_t row = 0; row < rows; ++row)
    detail::copy_on_device(to + row * to_step, from + row * from_step,
                           static_cast<std::size_t>(bytes), stream);
}

RANKMESH_PRIVATE_API void wait_for(StreamRef stream) {
  Stream::adopt(handle_of(stream)).wait(Deadline{default_timeout()});
}

void trim_pools() noexcept {
  const std::lock_guard lock{pools().mutex};
  for (const auto& [device, pool] : pools().by_device) (void)cudaMemPoolTrimTo(pool, 0);
}

}  // namespace rankmesh::device
