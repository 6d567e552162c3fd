// Streams and events.
#pragma once

#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {

/// A CUDA stream: created here and destroyed with this object, or adopted and left alone.
/// Move-only. Destroying it does not wait for its work (CUDA releases it when the work is done).
class RANKMESH_API Stream {
 public:
  Stream() = default;
  /// A stream of the current device that does not wait for the default stream.
  /// @param priority  0 is the default; lower numbers run first, within what the device offers.
  static Stream create(int priority = 0);
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
  /// Whether everything that was put on it has run.
  [[nodiscard]] bool query() const;
  /// Polls until everything has run. @throws TimeoutError.
  void wait(const Deadline& deadline) const;

 private:
  Stream(cudaStream_t native, bool owned) : native_{native}, owned_{owned} {}
  cudaStream_t native_ = nullptr;
  bool owned_ = false;
};

/// Waits until the current device has nothing left to do, whoever put it there. A thread of its own
/// sits in cudaDeviceSynchronize, which knows no deadline; it stays behind where the deadline
/// passes.
/// @throws TimeoutError, CudaError.
RANKMESH_API void drain(const Deadline& deadline);

/// A mark in a stream, without timing. Move-only.
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
  /// Marks what the stream holds now.
  void record(StreamRef stream);
  /// Whether what was marked has run.
  [[nodiscard]] bool query() const;
  /// The stream waits for the mark; the host does not.
  void make_wait(StreamRef stream) const;

 private:
  cudaEvent_t native_ = nullptr;
};

}  // namespace rankmesh::device
