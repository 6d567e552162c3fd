// CUDA's runtime, and its errors.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"

namespace rankmesh::device {

/// A call into the CUDA runtime that did not return cudaSuccess; keeps the native code.
class RANKMESH_API CudaError : public Error {
 public:
  CudaError(cudaError_t code, std::string message) : Error{std::move(message)}, code_{code} {}
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

namespace detail {
[[noreturn]] RANKMESH_API void fail(cudaError_t code, const char* function,
                                    const std::source_location& where);
}  // namespace detail

/// Every CUDA return value goes through here.
/// @throws CudaError with CUDA's own text, the function and the place of the call.
inline void check(cudaError_t code, const char* function,
                  const std::source_location& where = std::source_location::current()) {
  if (code != cudaSuccess) [[unlikely]]
    detail::fail(code, function, where);
}

/// What CUDA there is. Versions are CUDA's own numbers (12040 for 12.4); 0 where there is none.
struct CudaVersions {
  int runtime = 0;  ///< linked into rankmesh
  int driver = 0;   ///< newest CUDA that the driver offers; 0 without a driver
  int devices = 0;  ///< visible to this process
};
/// Local; never throws: without a driver the numbers are 0.
RANKMESH_API CudaVersions cuda_versions() noexcept;

}  // namespace rankmesh::device
