// SPDX-License-Identifier: BSD-3-Clause
#include "error.hpp"

#include <atomic>

#include "common/settings.hpp"
#include "fake_cuda.hpp"

namespace fake {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> fault{cudaSuccess};

struct Text {
  cudaError_t code;
  const char* name;
  const char* words;
};

constexpr Text texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
    {cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch",
     "system has unsupported display driver / cuda driver combination"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Text* find(cudaError_t error) {
  for (const Text& text : texts)
    if (text.code == error) return &text;
  return nullptr;
}

}  // namespace

cudaError_t not_ready() {
  return number("FAKE_CUDA_KEEP_NOT_READY", 0) != 0 ? record(cudaErrorNotReady) : cudaErrorNotReady;
}

cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess && !broken("last_error")) last_error = error;
  return error;
}

cudaError_t device_fault() { return fault; }

}  // namespace fake

extern "C" {

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = fake::last_error;
  fake::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return fake::last_error; }

const char* cudaGetErrorString(cudaError_t error) {
  const auto* text = fake::find(error);
  return text != nullptr ? text->words : "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
  const auto* text = fake::find(error);
  return text != nullptr ? text->name : "unrecognized error code";
}

void fake_cuda_fault(cudaError_t error) { fake::fault = error; }

}  // extern "C"
