// SPDX-License-Identifier: BSD-3-Clause
// Copies and fills.
#include <cstring>
#include <string>

#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"
#include "memory.hpp"
#include "pool.hpp"
#include "stream.hpp"

using namespace fake;

namespace {

// Device and pinned ranges must lie inside one allocation; what is called device memory must be it.
cudaError_t check_range(const void* pointer, size_t bytes, bool must_be_device) {
  const Found found = find_memory(pointer, bytes);
  if (must_be_device && found.place == Place::pageable) return cudaErrorInvalidValue;
  return found.whole ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_range(to, bytes, to_device); error != cudaSuccess)
    return error;
  return check_range(from, bytes, from_device);
}

}  // namespace

extern "C" {

// Pinned memory is read and written when the copy's turn comes. Pageable memory is done with when
// the call returns: a source is copied aside, and for a destination the call waits.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = check_copy(to, from, bytes, kind); error != cudaSuccess)
    return record(error);
  const bool plain = capturing(stream);
  const bool from_pageable = find_memory(from, 0).place == Place::pageable;
  const bool to_pageable = find_memory(to, 0).place == Place::pageable;
  cudaError_t error;
  if (from_pageable && !plain && !broken("pageable_copy")) {
    auto aside = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    error = submit(
        stream, [=]() -> FakeCudaWork { return [=] { std::memcpy(to, aside->data(), bytes); }; });
  } else {
    error =
        submit(stream, [=]() -> FakeCudaWork { return [=] { std::memmove(to, from, bytes); }; });
  }
  if (error == cudaSuccess && to_pageable && !plain) find_stream(stream)->end().wait();
  return record(error);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (capture_forbids_unsafe_calls()) return record(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
      error != cudaSuccess)
    return error;
  return cudaStreamSynchronize(nullptr);
}

// Rows of `width` bytes, `pitch` bytes apart. Between allocations of the device only.
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (width > to_pitch || width > from_pitch) return record(cudaErrorInvalidPitchValue);
  // cudaDevAttrMaxPitch is 2^31 - 1 ("CUDA Runtime API", cudaMemcpy2DAsync).
  const double most = number("FAKE_CUDA_MAX_PITCH", 2147483647);
  if ((static_cast<double>(to_pitch) > most || static_cast<double>(from_pitch) > most) &&
      !broken("max_pitch"))
    return record(cudaErrorInvalidPitchValue);
  if (width == 0 || height == 0) return cudaSuccess;
  if (kind != cudaMemcpyDeviceToDevice) return record(cudaErrorNotSupported);
  const auto bytes = [&](size_t pitch) { return pitch * (height - 1) + width; };
  if (to == nullptr || from == nullptr) return record(cudaErrorInvalidValue);
  if (const cudaError_t error = check_range(to, bytes(to_pitch), true); error != cudaSuccess)
    return record(error);
  if (const cudaError_t error = check_range(from, bytes(from_pitch), true); error != cudaSuccess)
    return record(error);
  return record(submit(stream, [=]() -> FakeCudaWork {
    return [=] {
      for (size_t row = 0; row < height; ++row)
        std::memmove(static_cast<char*>(to) + row * to_pitch,
                     static_cast<const char*>(from) + row * from_pitch, width);
    };
  }));
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = check_range(to, bytes, true); error != cudaSuccess)
    return record(error);
  return record(
      submit(stream, [=]() -> FakeCudaWork { return [=] { std::memset(to, value, bytes); }; }));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (capture_forbids_unsafe_calls()) return record(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t error = cudaMemsetAsync(to, value, bytes, nullptr); error != cudaSuccess)
    return error;
  return cudaStreamSynchronize(nullptr);
}

}  // extern "C"
