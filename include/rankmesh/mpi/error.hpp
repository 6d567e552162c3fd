// SPDX-License-Identifier: BSD-3-Clause
// Errors of the MPI library.
#pragma once

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// An MPI function returned an error. code() returns MPI's error code.
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
/// @throws MpiError if `code` is not MPI_SUCCESS. The error contains MPI's description of the
/// error, the name of the function, and the source location of the call.
inline void check(int code, const char* function,
                  const std::source_location& where = std::source_location::current()) {
  if (code != MPI_SUCCESS) [[unlikely]]
    detail::fail(code, function, where);
}

/// Returns whether MPI can be called, which means that MPI is initialised and not finalised.
RANKMESH_API bool is_active();

}  // namespace rankmesh::mpi
