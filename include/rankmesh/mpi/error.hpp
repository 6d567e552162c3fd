// SPDX-License-Identifier: BSD-3-Clause
// Errors of the MPI library.
#pragma once

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// Reports that an MPI function did not return MPI_SUCCESS. The error keeps MPI's error code.
class RANKMESH_API MpiError : public Error {
 public:
  MpiError(int code, std::string message) : Error{std::move(message)}, code_{code} {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

namespace detail {
[[noreturn]] RANKMESH_API void fail(int code, const char* function,
                                    const std::source_location& where);
}  // namespace detail

/// Checks the return value of an MPI function.
/// @throws MpiError  The error holds MPI's own text, the function and the source location of the
///                   call.
inline void check(int code, const char* function,
                  const std::source_location& where = std::source_location::current()) {
  if (code != MPI_SUCCESS) [[unlikely]]
    detail::fail(code, function, where);
}

/// Returns whether MPI can be called, which means that MPI is initialised and not finalised.
RANKMESH_API bool is_active();

}  // namespace rankmesh::mpi
