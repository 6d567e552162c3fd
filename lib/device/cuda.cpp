// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/cuda.hpp"

#include <fmt/format.h>

namespace rankmesh::device {

void detail::fail(cudaError_t code, const char* function, const std::source_location& where) {
  (void)cudaGetLastError();  // resets the error: the next check must not find it again
  throw CudaError{code, fmt::format("{} failed: {}: {} (code {}, {}:{})", function,
                                    cudaGetErrorName(code), cudaGetErrorString(code),
                                    static_cast<int>(code), where.file_name(), where.line())};
}

CudaVersions cuda_versions() noexcept {
  CudaVersions versions;
  if (cudaRuntimeGetVersion(&versions.runtime) != cudaSuccess) versions.runtime = 0;
  // Without a driver this function succeeds with version 0, whereas cudaGetDeviceCount fails and
  // does not set its output.
  if (cudaDriverGetVersion(&versions.driver) != cudaSuccess) versions.driver = 0;
  int devices = 0;
  versions.error = cudaGetDeviceCount(&devices);
  if (versions.error == cudaSuccess) versions.devices = devices;
  (void)cudaGetLastError();
  return versions;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string why_no_device(const CudaVersions& versions) {
  if (versions.devices > 0) return {};
  if (versions.driver == 0) return "no CUDA driver was found (libcuda.so.1)";
  // CUDA returns the same error for a missing driver and for a driver that is too old.
  if (versions.error == cudaErrorInsufficientDriver)
    return fmt::format(
        "the CUDA driver is too old: it offers CUDA {}, but rankmesh was built with CUDA {} "
        "(install a newer driver, or build with a CUDA that the driver supports)",
        version_text(versions.driver), version_text(versions.runtime));
  if (versions.error == cudaSuccess || versions.error == cudaErrorNoDevice)
    return "a CUDA driver was found, but no device is visible (CUDA_VISIBLE_DEVICES?)";
  return fmt::format("a CUDA driver was found, but it cannot use its devices: {}: {} (code {})",
                     cudaGetErrorName(versions.error), cudaGetErrorString(versions.error),
                     static_cast<int>(versions.error));
}

}  // namespace rankmesh::device
