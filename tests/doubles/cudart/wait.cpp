// SPDX-License-Identifier: BSD-3-Clause
// Asking and waiting for streams and for the device.
#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"
#include "pool.hpp"
#include "stream.hpp"

using namespace fake;

namespace {

// A captured stream has nothing to wait for, and neither has the default stream while a stream that
// waits for it is captured. The attempt spoils the capture.
cudaError_t refusal(Stream& stream) {
  std::lock_guard lock(issue_mutex());
  if (spoils_dependent_captures(stream)) return cudaErrorStreamCaptureImplicit;
  if (stream.capture && !broken("capture_guard")) {
    stream.capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return capture_forbids_queries() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  use_context();
  if (const cudaError_t error = refusal(*stream); error != cudaSuccess) return record(error);
  if (device_fault() != cudaSuccess) return record(device_fault());
  return stream->idle() ? cudaSuccess : not_ready();
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  use_context();
  if (const cudaError_t error = refusal(*stream); error != cudaSuccess) return record(error);
  stream->end().wait();
  shrink_pools();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  use_context();
  if (capture_forbids_device_wait(current_device()) || capture_forbids_unsafe_calls())
    return record(cudaErrorStreamCaptureUnsupported);
  wait_for_device(current_device());
  shrink_pools();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  if (function == nullptr) return record(cudaErrorInvalidValue);
  return record(submit(handle, [=]() -> FakeCudaWork { return [=] { function(data); }; }));
}

}  // extern "C"
