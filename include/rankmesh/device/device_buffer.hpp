// Device memory that is owned.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
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
/// Between two places of device memory, in stream order; the host does not wait.
RANKMESH_API void copy_on_device(void* to, const void* from, std::size_t bytes, StreamRef stream);
}  // namespace detail

/// Needs no header of CUDA's, so that a program with it compiles everywhere; without CUDA it throws
/// NoDeviceError.
///
/// `count` elements on the current device, not initialised. Move-only. Allocating and freeing may
/// wait for the whole device: do it while nothing waits for a peer.
template <Element T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t count)
      : data_{static_cast<T*>(detail::allocate(count * sizeof(T)))}, count_{count} {}
  /// Copies the values; they are there when the constructor returns.
  explicit DeviceBuffer(std::span<const T> values) : DeviceBuffer{values.size()} {
    upload(values, StreamRef{});
  }
  ~DeviceBuffer() { detail::release(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, count_{std::exchange(other.count_, 0)} {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] DeviceSpan<T> span() const noexcept { return {data_, count_}; }

  /// Copies in stream order and waits for it. `values` has at most size() elements. @throws
  /// TimeoutError after default_timeout().
  void upload(std::span<const T> values, StreamRef stream) {
    if (values.size() > count_) throw UsageError{"upload of more elements than the buffer has"};
    detail::copy(data_, values.data(), values.size() * sizeof(T), detail::Direction::to_device,
                 stream);
  }
  /// The elements, once what the stream holds has run. The host waits. @throws TimeoutError after
  /// default_timeout().
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
