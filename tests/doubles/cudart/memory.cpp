// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"
#include "fake_cuda.hpp"
#include "pool.hpp"
#include "stream.hpp"

namespace fake {
namespace {

constexpr std::size_t alignment = 4096;
constexpr int unwritten =
    0xA5;  // new and freed memory reads as this, so that no code relies on zeros

struct Block {
  std::size_t bytes;
  Place place;
  int device;
  bool registered = false;  // the memory is the user's, only its pinning is ours
};

struct Register {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> blocks;
  std::map<int, long long> charged;  // per device
  long long used(int device) const {
    if (broken("memory_counted")) return 0;
    long long sum = 0;
    for (const auto& [base, block] : blocks)
      if (block.place == Place::device && block.device == device)
        sum += static_cast<long long>(block.bytes);
    const auto extra = charged.find(device);
    return sum + (extra == charged.end() ? 0 : extra->second);
  }
};

Register& memory() {
  static Register* const made =
      new Register;  // never destroyed: streams may outlive static objects
  return *made;
}

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

void* raw_memory(std::size_t bytes) {
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* pointer = std::aligned_alloc(alignment, rounded);
  if (pointer != nullptr) std::memset(pointer, unwritten, rounded);
  return pointer;
}

}  // namespace

std::size_t device_memory() {
  return static_cast<std::size_t>(number("FAKE_CUDA_MEMORY", 16.0 * (1ULL << 30)));
}

Found find_memory(const void* pointer, std::size_t bytes) {
  std::lock_guard lock(memory().mutex);
  auto next = memory().blocks.upper_bound(address(pointer));
  if (next == memory().blocks.begin()) return {};
  const auto& [base, block] = *std::prev(next);
  if (address(pointer) >= base + block.bytes) return {};
  const bool whole = address(pointer) + bytes <= base + block.bytes || broken("range_check");
  return {block.place, block.device, whole, reinterpret_cast<char*>(base), block.bytes};
}

cudaError_t allocate(void** pointer, std::size_t bytes, int device) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  std::lock_guard lock(memory().mutex);
  if (memory().used(device) + static_cast<long long>(bytes) >
      static_cast<long long>(device_memory()))
    return cudaErrorMemoryAllocation;
  void* made = raw_memory(bytes);
  if (made == nullptr) return cudaErrorMemoryAllocation;
  memory().blocks[address(made)] = {bytes, Place::device, device};
  *pointer = made;
  return cudaSuccess;
}

cudaError_t release(void* pointer) {
  std::lock_guard lock(memory().mutex);
  const auto block = memory().blocks.find(address(pointer));
  if (block == memory().blocks.end() || block->second.place != Place::device)
    return cudaErrorInvalidValue;
  std::memset(pointer, unwritten, block->second.bytes);
  memory().blocks.erase(block);
  std::free(pointer);
  return cudaSuccess;
}

MemoryCounters count_memory() {
  std::lock_guard lock(memory().mutex);
  MemoryCounters counters{};
  for (const auto& [base, block] : memory().blocks) {
    if (block.place == Place::pinned) {
      ++counters.pinned;
    } else {
      ++counters.device;
      counters.bytes += static_cast<long long>(block.bytes);
    }
  }
  for (const auto& [device, bytes] : memory().charged) counters.bytes += bytes;
  return counters;
}

}  // namespace fake

using namespace fake;

extern "C" {

bool fake_cuda_owns(const void* pointer, size_t bytes, int* device) {
  const Found found = find_memory(pointer, bytes);
  if (device != nullptr) *device = found.device;
  return found.place != Place::pageable && found.whole;
}

bool fake_cuda_unmap(void* pointer) {
  const Found found = find_memory(pointer, 0);
  if (found.place != Place::device || found.base != pointer) return false;
  if (broken("unmap")) wait_for_device(found.device);
  if (is_device_idle(found.device)) return release(pointer) == cudaSuccess;
  std::lock_guard lock(memory().mutex);
  std::memset(pointer, unwritten, found.bytes);
  memory().blocks.erase(address(pointer));
  return true;
}

void fake_cuda_charge(int device, long long bytes) {
  std::lock_guard lock(memory().mutex);
  memory().charged[device] += bytes;
}

// Allocations of device and of pinned memory are among the calls that wait for the work of all
// streams ("CUDA Programming Guide", implicit synchronization).
cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  use_context();
  if (capture_forbids_unsafe_calls()) return record(cudaErrorStreamCaptureUnsupported);
  if (bytes > 0 && !broken("malloc_waits")) wait_implicitly(current_device());
  return record(allocate(pointer, bytes, current_device()));
}

// As the real one, it waits for the device: a queued operation may still use the memory. For memory
// that was allocated in stream order, it waits for nothing ("Stream-Ordered Memory Allocator" in
// the CUDA Programming Guide): the driver assumes that all uses have ended.
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (capture_forbids_unsafe_calls()) return record(cudaErrorStreamCaptureUnsupported);
  const Found found = find_memory(pointer, 0);
  if (found.place != Place::device || found.base != pointer) return record(cudaErrorInvalidValue);
  const bool is_pooled = forget_pooled(pointer) && !broken("pool_free");
  if (!is_pooled && !broken("free_waits")) wait_implicitly(found.device);
  return record(release(pointer));
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (pointer == nullptr) return record(cudaErrorInvalidValue);
  use_context();
  if (capture_forbids_unsafe_calls()) return record(cudaErrorStreamCaptureUnsupported);
  if (!broken("malloc_waits")) wait_implicitly(current_device());
  void* made = raw_memory(bytes == 0 ? 1 : bytes);
  if (made == nullptr) return record(cudaErrorMemoryAllocation);
  std::lock_guard lock(memory().mutex);
  memory().blocks[address(made)] = {bytes == 0 ? 1 : bytes, Place::pinned, -1};
  *pointer = made;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const Found found = find_memory(pointer, 0);
  if (found.place != Place::pinned || found.base != pointer) return record(cudaErrorInvalidValue);
  if (capture_forbids_unsafe_calls()) return record(cudaErrorStreamCaptureUnsupported);
  wait_implicitly(current_device());
  std::lock_guard lock(memory().mutex);
  const auto block = memory().blocks.find(address(pointer));
  if (block == memory().blocks.end() || block->second.registered)
    return record(cudaErrorInvalidValue);
  memory().blocks.erase(block);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int) {
  if (pointer == nullptr || bytes == 0) return record(cudaErrorInvalidValue);
  std::lock_guard lock(memory().mutex);
  const auto [block, added] =
      memory().blocks.try_emplace(address(pointer), Block{bytes, Place::pinned, -1, true});
  return added ? cudaSuccess : record(cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void* pointer) {
  std::lock_guard lock(memory().mutex);
  const auto block = memory().blocks.find(address(pointer));
  if (block == memory().blocks.end() || !block->second.registered)
    return record(cudaErrorInvalidValue);
  memory().blocks.erase(block);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int) {
  if (device == nullptr || find_memory(host, 0).place != Place::pinned)
    return record(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (free_bytes == nullptr || total_bytes == nullptr) return record(cudaErrorInvalidValue);
  std::lock_guard lock(memory().mutex);
  *total_bytes = device_memory();
  const auto used = static_cast<std::size_t>(memory().used(current_device()));
  *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (attributes == nullptr) return record(cudaErrorInvalidValue);
  *attributes = cudaPointerAttributes{};
  const Found found = find_memory(pointer, 0);
  void* const plain = const_cast<void*>(pointer);
  switch (found.place) {
    case Place::pageable:
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = -2;
      attributes->hostPointer = plain;
      break;
    case Place::pinned:
      attributes->type = cudaMemoryTypeHost;
      attributes->device = current_device();
      attributes->hostPointer = plain;
      attributes->devicePointer = plain;
      break;
    case Place::device:
      attributes->type = cudaMemoryTypeDevice;
      attributes->device = found.device;
      attributes->devicePointer = plain;
      break;
  }
  return cudaSuccess;
}

}  // extern "C"
