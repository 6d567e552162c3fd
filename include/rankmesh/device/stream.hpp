// SPDX-License-Identifier: BSD-3-Clause
// Streams and events.
#pragma once

#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {

/// Holds a CUDA stream. The destructor destroys a created stream, but not an adopted stream.
/// Move-only. The destructor does not wait for the work on the stream.
class RANKMESH_API Stream {
 public:
  Stream() = default;
  /// Creates a stream of the current device that does not wait for the default stream.
  /// @param priority  Lower numbers run first. CUDA limits it to the range of the device.
  static Stream create(int priority = 0);
  /// Refers to a stream of the program.
  static Stream adopt(cudaStream_t native) { return Stream{native, false}; }
  ~Stream();
  Stream(Stream&& other) noexcept
      : native_{std::exchange(other.native_, nullptr)},
        owned_{std::exchange(other.owned_, false)} {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(native_, other.native_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] cudaStream_t native() const noexcept { return native_; }
  operator StreamRef() const noexcept {
    return StreamRef{native_};
  }  // implicit: a stream is its reference
  /// Returns whether all work on the stream has ended.
  [[nodiscard]] bool query() const;
  /// Polls until all work on the stream has ended. @throws TimeoutError.
  void wait(const Deadline& deadline) const;

 private:
  Stream(cudaStream_t native, bool owned) : native_{native}, owned_{owned} {}
  cudaStream_t native_ = nullptr;
  bool owned_ = false;
};

/// Waits until all work on the current device has ended, including the work of other libraries.
///
/// cudaDeviceSynchronize has no deadline, so another thread calls it. When the deadline passes,
/// that thread keeps waiting.
/// @throws TimeoutError, CudaError.
RANKMESH_API void drain(const Deadline& deadline);

/// A CUDA event without timing. Move-only.
class RANKMESH_API Event {
 public:
  Event();
  ~Event();
  Event(Event&& other) noexcept : native_{std::exchange(other.native_, nullptr)} {}
  Event& operator=(Event&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] cudaEvent_t native() const noexcept { return native_; }
  /// Records the work that is now on the stream.
  void record(StreamRef stream);
  /// Returns whether the recorded work has ended.
  [[nodiscard]] bool query() const;
  /// Makes a stream wait for the recorded work. The host does not wait.
  void make_wait(StreamRef stream) const;

 private:
  cudaEvent_t native_ = nullptr;
};

}  // namespace rankmesh::device
