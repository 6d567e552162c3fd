// SPDX-License-Identifier: BSD-3-Clause
// The memory that an expert dispatcher keeps between steps. A step that is no larger than an
// earlier one allocates and frees nothing. A larger one allocates device memory in the order of its
// stream, because cudaMalloc and cudaFree may wait for operations whose peers wait for this rank.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "device_memory.hpp"
#include "rankmesh/base/buffer.hpp"

namespace rankmesh::exchange::detail {

/// Host or device memory that only grows.
class ScratchMemory {
 public:
  /// Returns memory for work on the stream. The stream is used for device memory only.
  std::byte* get(std::int64_t bytes, MemoryKind kind, StreamRef stream) {
    const auto size = static_cast<std::size_t>(bytes);
    if (kind == MemoryKind::host) return on_host(size);
    if (device_size_ < size) {
      require_no_capture(stream);
      for (DeviceMemory& memory : std::exchange(retired_, {}))
        device::free_in_order(memory.release(), stream);
      device_size_ = 0;  // there may not be enough memory for the old and the new block together
      device::free_in_order(on_device_.release(), stream);
      on_device_.reset(static_cast<std::byte*>(device::allocate_in_order(size, stream)));
      device_size_ = size;
    }
    return on_device_.get();
  }
  /// Makes get() with up to `bytes` bytes allocate nothing.
  void reserve(std::int64_t bytes, MemoryKind kind) {
    const auto size = static_cast<std::size_t>(bytes);
    if (kind == MemoryKind::host) return (void)on_host(size);
    if (device_size_ >= size) return;
    void* larger = allocate_for_all_streams(size);
    // A stream may still use the old memory, so get() frees it in stream order when it grows again.
    if (on_device_ != nullptr) retired_.push_back(std::move(on_device_));
    on_device_.reset(static_cast<std::byte*>(larger));
    device_size_ = size;
  }

 private:
  using DeviceMemory = std::unique_ptr<std::byte, FreeAfterDevice>;

  std::byte* on_host(std::size_t size) {
    if (host_size_ < size) {
      on_host_.reset();
      on_host_ = std::make_unique_for_overwrite<std::byte[]>(size);
      host_size_ = size;
    }
    return on_host_.get();
  }

  std::unique_ptr<std::byte[]> on_host_;
  std::size_t host_size_ = 0;
  DeviceMemory on_device_;
  std::size_t device_size_ = 0;
  std::vector<DeviceMemory> retired_;
};

/// The lists of routes in device memory. A route that is destroyed returns its block. A later route
/// reuses the block after the work that is on its stream at that time.
class RouteMemory : public std::enable_shared_from_this<RouteMemory> {
 public:
  /// Returns `count` numbers for work on the stream.
  std::shared_ptr<std::int64_t> take(std::size_t count, StreamRef stream) {
    const std::lock_guard lock{mutex_};
    const std::size_t size = std::bit_ceil(count);
    Block block;
    if (!idle_.empty()) {
      block = std::move(idle_.back());
      idle_.pop_back();
    }
    if (block.size < size) {
      device::free_in_order(block.memory.release(), stream);
      block.memory.reset(static_cast<std::int64_t*>(
          device::allocate_in_order(size * sizeof(std::int64_t), stream)));
      block.size = size;
    }
    std::int64_t* memory = block.memory.get();
    auto kept = std::make_shared<Block>(std::move(block));
    return {memory, [kept, all = shared_from_this()](std::int64_t*) {
              const std::lock_guard own{all->mutex_};
              all->idle_.push_back(std::move(*kept));
            }};
  }

 private:
  struct Block {
    std::unique_ptr<std::int64_t, FreeAfterDevice> memory;
    std::size_t size = 0;
  };
  std::mutex mutex_;  // routes may be destroyed in another thread
  std::vector<Block> idle_;
};

}  // namespace rankmesh::exchange::detail
