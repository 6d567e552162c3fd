// SPDX-License-Identifier: BSD-3-Clause
// Asking and waiting for streams and for the device.
#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"
#include "pool.hpp"
#include "stream.hpp"

using namespace fake;

namespace {

// A captured stream has nothing to wait for, and the attempt spoils the capture.
bool spoils_capture(Stream& stream) {
  std::lock_guard lock(issue_mutex());
  if (!stream.capture || broken("capture_guard")) return false;
  stream.capture->invalid = true;
  return true;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (spoils_capture(*stream) || capture_forbids_queries())
    return record(cudaErrorStreamCaptureUnsupported);
  if (device_fault() != cudaSuccess) return record(device_fault());
  return stream->idle() ? cudaSuccess : not_ready();
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  const auto stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (spoils_capture(*stream) || capture_forbids_queries())
    return record(cudaErrorStreamCaptureUnsupported);
  stream->end().wait();
  shrink_pools();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (capture_forbids_unsafe_calls()) return record(cudaErrorStreamCaptureUnsupported);
  wait_for_device(current_device());
  shrink_pools();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  if (function == nullptr) return record(cudaErrorInvalidValue);
  return record(submit(handle, [=]() -> FakeCudaWork { return [=] { function(data); }; }));
}

}  // extern "C"
