// SPDX-License-Identifier: BSD-3-Clause
// Memory that is allocated and freed in stream order. The bytes come from the same register as
// cudaMalloc's; a pool only counts what it would hold of the device.
#include "pool.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"
#include "memory.hpp"
#include "stream.hpp"

struct CUmemPoolHandle_st {
  int device = 0;
  std::uint64_t threshold = 0;
  bool internal_dependencies = true;  // cudaMemPoolReuseAllowInternalDependencies
  std::size_t used = 0, reserved = 0;
  std::vector<fake::Mark> frees;  // that may not have run yet
};

using namespace fake;

namespace {

struct Pooled {
  cudaMemPool_t pool;
  std::size_t bytes;
};

struct Pools {
  std::mutex mutex;
  std::map<int, cudaMemPool_t> defaults;
  std::vector<cudaMemPool_t> live;
  std::map<void*, Pooled> memory;
  long long growths = 0;
};

Pools& pools() {
  static Pools* const made = new Pools;
  return *made;
}

cudaMemPool_t new_pool(int device) {
  auto* pool = new CUmemPoolHandle_st;
  pool->device = device;
  pools().live.push_back(pool);
  return pool;
}

cudaMemPool_t default_pool(int device) {
  auto& pool = pools().defaults[device];
  if (pool == nullptr) pool = new_pool(device);
  return pool;
}

bool is_live(cudaMemPool_t pool) {
  return std::find(pools().live.begin(), pools().live.end(), pool) != pools().live.end();
}

// "Stream-Ordered Memory Allocator" in the CUDA Programming Guide, reuse policies: memory that
// another stream frees later is used only if the pool may make the allocating stream wait for it.
std::vector<Mark> take(CUmemPoolHandle_st& pool, Stream& stream, std::size_t bytes) {
  std::erase_if(pool.frees, [](const Mark& mark) { return mark.reached(); });
  std::vector<Mark> foreign;
  for (const Mark& mark : pool.frees)
    if (mark.stream.get() != &stream) foreign.push_back(mark);
  pool.used += bytes;
  const bool may_wait = pool.internal_dependencies && !broken("pool_dependencies");
  if (pool.used > pool.reserved || (!foreign.empty() && !may_wait)) {
    pool.reserved = std::max(pool.used, pool.reserved + (foreign.empty() ? 0 : bytes));
    ++pools().growths;
    return {};
  }
  return foreign;
}

// Pools are made and changed like memory that is not in stream order.
bool capture_forbids_pools() { return !broken("pool_guard") && capture_forbids_unsafe_calls(); }

// Memory that is allocated during a capture has one address in all launches of the graph, and its
// content does not outlive a launch.
cudaError_t add_node(Stream& stream, void* pointer, std::size_t bytes) {
  {
    std::lock_guard lock(issue_mutex());
    add_graph_memory(*stream.capture, pointer, {pointer, [](void* memory) { release(memory); }});
  }
  return submit_into_queue(
      &stream, [=]() -> FakeCudaWork { return [=] { std::memset(pointer, 0xA5, bytes); }; });
}

cudaError_t free_in_capture(Stream& stream, void* pointer, std::size_t bytes) {
  {
    std::lock_guard lock(issue_mutex());
    if (!free_graph_memory(*stream.capture, pointer)) return cudaErrorInvalidValue;
  }
  return submit_into_queue(
      &stream, [=]() -> FakeCudaWork { return [=] { std::memset(pointer, 0xA5, bytes); }; });
}

cudaError_t allocate_from(cudaMemPool_t pool, void** pointer, std::size_t bytes,
                          cudaStream_t handle) {
  const auto stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t error = allocate(pointer, bytes, stream->device); error != cudaSuccess)
    return error;
  if (capturing(handle) && !broken("memory_nodes")) return add_node(*stream, *pointer, bytes);
  std::vector<Mark> after;
  {
    std::lock_guard lock(pools().mutex);
    if (pool == nullptr) pool = default_pool(stream->device);
    pools().memory[*pointer] = {pool, bytes};
    after = take(*pool, *stream, bytes);
  }
  if (after.empty()) return cudaSuccess;
  return submit(
      handle, []() -> FakeCudaWork { return {}; }, std::move(after));
}

}  // namespace

namespace fake {

bool capturing(cudaStream_t handle) {
  std::lock_guard lock(issue_mutex());
  const auto stream = find_stream(handle);
  return stream && stream->capture;
}

bool forget_pooled(void* pointer) {
  std::lock_guard lock(pools().mutex);
  const auto found = pools().memory.find(pointer);
  if (found == pools().memory.end()) return false;
  found->second.pool->used -= found->second.bytes;
  pools().memory.erase(found);
  return true;
}

void shrink_pools() {
  if (broken("pool_threshold")) return;
  std::lock_guard lock(pools().mutex);
  for (const cudaMemPool_t pool : pools().live)
    if (pool->reserved > pool->threshold)
      pool->reserved = std::max<std::size_t>(pool->used, pool->threshold);
}

long long pool_growths() {
  std::lock_guard lock(pools().mutex);
  return pools().growths;
}

}  // namespace fake

extern "C" {

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  return record(allocate_from(nullptr, pointer, bytes, stream));
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  {
    std::lock_guard lock(pools().mutex);
    if (!is_live(pool)) return record(cudaErrorInvalidValue);
  }
  return record(allocate_from(pool, pointer, bytes, stream));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  if (pointer == nullptr) return cudaSuccess;
  const Found found = find_memory(pointer, 0);
  if (found.place != Place::device || found.base != pointer) return record(cudaErrorInvalidValue);
  if (capturing(handle)) return record(free_in_capture(*find_stream(handle), pointer, found.bytes));
  const cudaError_t error =
      submit(handle, [=]() -> FakeCudaWork { return [=] { release(pointer); }; });
  if (error != cudaSuccess) return record(error);
  std::lock_guard lock(pools().mutex);
  const auto pooled = pools().memory.find(pointer);
  if (pooled == pools().memory.end()) return cudaSuccess;
  pooled->second.pool->used -= pooled->second.bytes;
  pooled->second.pool->frees.push_back(find_stream(handle)->end());
  pools().memory.erase(pooled);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (pool == nullptr || !valid_device(device)) return record(cudaErrorInvalidValue);
  std::lock_guard lock(pools().mutex);
  *pool = default_pool(device);
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* wanted) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (pool == nullptr || wanted == nullptr || wanted->allocType != cudaMemAllocationTypePinned ||
      wanted->location.type != cudaMemLocationTypeDevice || !valid_device(wanted->location.id))
    return record(cudaErrorInvalidValue);
  if (capture_forbids_pools()) return record(cudaErrorStreamCaptureUnsupported);
  std::lock_guard lock(pools().mutex);
  *pool = new_pool(wanted->location.id);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  if (capture_forbids_pools()) return record(cudaErrorStreamCaptureUnsupported);
  std::lock_guard lock(pools().mutex);
  return record(std::erase(pools().live, pool) == 1 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (capture_forbids_pools()) return record(cudaErrorStreamCaptureUnsupported);
  std::lock_guard lock(pools().mutex);
  if (!is_live(pool) || value == nullptr) return record(cudaErrorInvalidValue);
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    pool->threshold = *static_cast<std::uint64_t*>(value);
  else if (attribute == cudaMemPoolReuseAllowInternalDependencies)
    pool->internal_dependencies = *static_cast<int*>(value) != 0;
  else if (attribute > cudaMemPoolReuseAllowInternalDependencies)
    return record(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  if (capture_forbids_pools()) return record(cudaErrorStreamCaptureUnsupported);
  std::lock_guard lock(pools().mutex);
  if (!is_live(pool)) return record(cudaErrorInvalidValue);
  pool->reserved = std::min(pool->reserved, std::max(pool->used, keep));
  return cudaSuccess;
}

}  // extern "C"
