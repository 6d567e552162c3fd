// SPDX-License-Identifier: BSD-3-Clause
// Errors and versions of the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"

namespace rankmesh::device {

/// Reports that a function of the CUDA runtime did not return cudaSuccess. The error keeps CUDA's
/// error code.
class RANKMESH_API CudaError : public LibraryError {
 public:
  /// Creates an error from CUDA's code and a text.
  CudaError(cudaError_t code, std::string message)
      : LibraryError{std::move(message)}, code_{code} {}
  /// Returns CUDA's code.
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

namespace detail {
[[noreturn]] RANKMESH_API void fail(cudaError_t code, const char* function,
                                    const std::source_location& where);
}  // namespace detail

/// Checks the return value of a function of the CUDA runtime.
/// @throws CudaError unless `code` is cudaSuccess. The error holds CUDA's own text, the name of the
/// function, and the source location of the call.
inline void check(cudaError_t code, const char* function,
                  const std::source_location& where = std::source_location::current()) {
  if (code != cudaSuccess) [[unlikely]]
    detail::fail(code, function, where);
}

/// Holds the versions of CUDA, encoded as in CUDA itself: 12040 means 12.4.
struct CudaVersions {
  int runtime = 0;  ///< The version of the runtime that is linked into rankmesh.
  int driver = 0;   ///< The newest version that the driver supports; 0 without a driver.
  int devices = 0;  ///< The number of devices that this process can use.
  /// The status that CUDA returned when rankmesh asked for the number of devices.
  cudaError_t error = cudaSuccess;
};
/// Returns the versions of CUDA and the number of devices. Local.
RANKMESH_API CudaVersions cuda_versions() noexcept;

/// Returns a version as people write it: "12.4" for 12040.
RANKMESH_API std::string version_text(int version);

/// Returns the reason why this process can use no device: no driver, a driver that is too old for
/// the runtime, no visible device, or CUDA's own text for another error of the driver. The result
/// is empty if there are devices.
RANKMESH_API std::string why_no_device(const CudaVersions& versions);

}  // namespace rankmesh::device
