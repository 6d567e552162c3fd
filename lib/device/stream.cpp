// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/stream.hpp"

#include <future>
#include <thread>

#include <fmt/format.h>

#include "rankmesh/wait/backoff.hpp"

namespace rankmesh::device {
namespace {

bool is_done(cudaError_t code, const char* function) {
  if (code == cudaErrorNotReady) {
    // The CUDA Programming Guide says that CUDA does not keep this code as the last error, but some
    // versions do. The program must not treat it as an error of its own calls.
    if (cudaPeekAtLastError() == cudaErrorNotReady) (void)cudaGetLastError();
    return false;
  }
  check(code, function);
  return true;
}

cudaStream_t native_of(StreamRef stream) { return static_cast<cudaStream_t>(stream.native()); }

}  // namespace

Stream Stream::create(int priority) {
  cudaStream_t native = nullptr;
  check(cudaStreamCreateWithPriority(&native, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
  return Stream{native, true};
}

Stream::~Stream() {
  if (owned_) (void)cudaStreamDestroy(native_);
}

bool Stream::query() const {
  const RelaxedCaptureMode relaxed;
  return is_done(cudaStreamQuery(native_), "cudaStreamQuery");
}

void Stream::wait(const Deadline& deadline) const {
  if (!poll_until([&] { return query(); }, deadline))
    throw TimeoutError{
        fmt::format("the work on a stream did not end within {} s", deadline.seconds()),
        "a kernel or a collective has not ended: check which calls the other members make",
        {}};
}

void drain(const Deadline& deadline) {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  drain(device, deadline);
}

void drain(int device, const Deadline& deadline) {
  std::promise<cudaError_t> promise;
  auto result = promise.get_future();
  std::thread{[device, promise = std::move(promise)]() mutable {
    // This call comes first: any other would create a context on CUDA's default, device 0.
    const cudaError_t set = cudaSetDevice(device);
    const RelaxedCaptureMode relaxed;
    promise.set_value(set == cudaSuccess ? cudaDeviceSynchronize() : set);
  }}.detach();
  // The device may wait for operations on host memory, so this wait advances them.
  const auto is_ready = [&] {
    return result.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
  };
  if (!poll_until(is_ready, deadline))
    throw TimeoutError{
        fmt::format("the work on device {} did not end within {} s", device, deadline.seconds()),
        "a kernel or a collective has not ended: check which calls the other members make",
        {}};
  check(result.get(), "cudaDeviceSynchronize");
}

Event::Event() {
  check(cudaEventCreateWithFlags(&native_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

Event::~Event() {
  if (native_ != nullptr) (void)cudaEventDestroy(native_);
}

void Event::record(StreamRef stream) {
  check(cudaEventRecord(native_, native_of(stream)), "cudaEventRecord");
}
bool Event::query() const {
  const RelaxedCaptureMode relaxed;
  return is_done(cudaEventQuery(native_), "cudaEventQuery");
}
void Event::make_wait(StreamRef stream) const {
  check(cudaStreamWaitEvent(native_of(stream), native_, 0), "cudaStreamWaitEvent");
}

}  // namespace rankmesh::device
