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
  if (versions.driver > 0 && cudaGetDeviceCount(&devices) == cudaSuccess)
    versions.devices = devices;
  (void)cudaGetLastError();
  return versions;
}

}  // namespace rankmesh::device
