// SPDX-License-Identifier: BSD-3-Clause
// Owned device memory.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/base/device_span.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::device {

namespace detail {
RANKMESH_API void* allocate(std::size_t bytes);
RANKMESH_API void release(void* memory) noexcept;
enum class Direction { to_device, to_host };
RANKMESH_API void copy(void* to, const void* from, std::size_t bytes, Direction direction,
                       StreamRef stream);
/// Copies within device memory, in stream order. The host does not wait for the copy.
RANKMESH_API void copy_on_device(void* to, const void* from, std::size_t bytes, StreamRef stream);
/// Sets device memory to zeros, in stream order. The host does not wait.
RANKMESH_API void zero_on_device(void* memory, std::size_t bytes, StreamRef stream);
}  // namespace detail

/// Owns memory of the current device. The elements are not initialised. Move-only.
///
/// This header includes no CUDA headers, so programs that use it also compile without CUDA. If
/// rankmesh was built without CUDA, or if this process can use no device, the constructors throw
/// NoDeviceError with the reason. Allocating and freeing
/// may wait for all work on the device. Do not allocate or free a DeviceBuffer while operations on
/// the device wait for other ranks.
template <MovableElement T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Allocates memory for `count` elements on the current device.
  explicit DeviceBuffer(std::size_t count)
      : data_{static_cast<T*>(detail::allocate(count * sizeof(T)))}, count_{count} {}
  /// Allocates memory and copies the values into it. Blocks until the copy is complete.
  explicit DeviceBuffer(std::span<const T> values) : DeviceBuffer{values.size()} {
    upload(values, StreamRef{});
  }
  ~DeviceBuffer() { detail::release(data_); }
  /// Takes over the memory of `other`, which is then empty.
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, count_{std::exchange(other.count_, 0)} {}
  /// Frees the memory, and takes over the memory of `other`, which is then empty.
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  /// Returns the address of the first element, in device memory.
  [[nodiscard]] T* data() const noexcept { return data_; }
  /// Returns the number of elements.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Returns a span of all elements.
  [[nodiscard]] DeviceSpan<T> span() const noexcept { return {data_, count_}; }

  /// Copies `values` into the first elements, in stream order. Blocks until the copy is complete.
  /// @throws UsageError if there are more than size() values.
  /// @throws TimeoutError if the copy does not end within default_timeout().
  void upload(std::span<const T> values, StreamRef stream) {
    if (values.size() > count_) throw UsageError{"the upload has more elements than the buffer"};
    detail::copy(data_, values.data(), values.size() * sizeof(T), detail::Direction::to_device,
                 stream);
  }
  /// Blocks until the work that is already on the stream is complete, and then returns the
  /// elements.
  /// @throws TimeoutError if the work does not end within default_timeout().
  [[nodiscard]] std::vector<T> download(StreamRef stream) const {
    std::vector<T> values(count_);
    detail::copy(values.data(), data_, count_ * sizeof(T), detail::Direction::to_host, stream);
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace rankmesh::device
