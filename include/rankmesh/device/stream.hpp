// SPDX-License-Identifier: BSD-3-Clause
// Streams and events.
#pragma once

#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {

/// Holds a CUDA stream. Move-only. The destructor destroys a stream that create() has created,
/// but not a stream that was passed to adopt(). The destructor does not wait for the work on
/// the stream.
class RANKMESH_API Stream {
 public:
  Stream() = default;
  /// Creates a stream on the current device. The stream does not synchronise with the default
  /// stream (cudaStreamNonBlocking).
  /// @param priority  Lower numbers mean higher priority. CUDA clamps the number to the range that
  ///                  the device supports.
  static Stream create(int priority = 0);
  /// Refers to a stream that the program owns.
  static Stream adopt(cudaStream_t native) { return Stream{native, false}; }
  ~Stream();
  /// Takes over the stream of `other`, which is then empty.
  Stream(Stream&& other) noexcept
      : native_{std::exchange(other.native_, nullptr)},
        owned_{std::exchange(other.owned_, false)} {}
  /// Destroys the stream, and takes over the stream of `other`, which is then empty.
  Stream& operator=(Stream&& other) noexcept {
    std::swap(native_, other.native_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Returns the stream of CUDA.
  [[nodiscard]] cudaStream_t native() const noexcept { return native_; }
  /// Refers to the stream, as operations expect it.
  operator StreamRef() const noexcept {
    return StreamRef{native_};
  }  // implicit: a Stream can be passed wherever a StreamRef is expected
  /// Returns whether all work on the stream has ended.
  [[nodiscard]] bool query() const;
  /// Polls until all work on the stream has ended.
  /// @throws TimeoutError if the deadline passes.
  void wait(const Deadline& deadline) const;

 private:
  Stream(cudaStream_t native, bool owned) : native_{native}, owned_{owned} {}
  cudaStream_t native_ = nullptr;
  bool owned_ = false;
};

/// Lets the calling thread ask CUDA about streams and events, as long as this object exists. While
/// any thread captures a graph in global mode, or this thread in a mode that is not relaxed, CUDA
/// would refuse the question, and the capture would become invalid
/// (cudaThreadExchangeStreamCaptureMode). NCCL does the same around its own questions
/// (ncclCommPollEventCallbacks in src/include/comm.h).
class RelaxedCaptureMode {
 public:
  RelaxedCaptureMode() noexcept { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCaptureMode() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Waits until all work on the current device has ended, including the work of other libraries.
///
/// cudaDeviceSynchronize has no deadline, so a helper thread calls it. If the deadline passes, the
/// helper thread keeps waiting. While a stream of the device is captured, in any mode and by any
/// thread, CUDA refuses the wait, and the capture becomes invalid.
/// @throws TimeoutError if the deadline passes; CudaError if CUDA reports an error.
RANKMESH_API void drain(const Deadline& deadline);
/// Does the same for a device that need not be current.
RANKMESH_API void drain(int device, const Deadline& deadline);

/// Holds a CUDA event that records no times. Move-only.
class RANKMESH_API Event {
 public:
  Event();
  ~Event();
  /// Takes over the event of `other`, which is then empty.
  Event(Event&& other) noexcept : native_{std::exchange(other.native_, nullptr)} {}
  /// Destroys the event, and takes over the event of `other`, which is then empty.
  Event& operator=(Event&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Returns the event of CUDA.
  [[nodiscard]] cudaEvent_t native() const noexcept { return native_; }
  /// Records the work that is on the stream when record() is called.
  void record(StreamRef stream);
  /// Returns whether the recorded work has ended.
  [[nodiscard]] bool query() const;
  /// Makes a stream wait for the recorded work. The host does not wait.
  void make_wait(StreamRef stream) const;

 private:
  cudaEvent_t native_ = nullptr;
};

}  // namespace rankmesh::device
