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
class RANKMESH_API MpiError : public LibraryError {
 public:
  /// Creates an error from MPI's code, a text, and a hint, which may be empty.
  MpiError(int code, std::string message, std::string hint = {})
      : LibraryError{std::move(message), std::move(hint)}, code_{code} {}
  /// Returns MPI's code.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

namespace detail {
[[noreturn]] RANKMESH_API void fail(int code, const char* function,
                                    const std::source_location& where);
[[noreturn]] RANKMESH_API void refuse_after_finalize();
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

/// Checks that the program has not finalised MPI. MPI ends the job if it is called after that.
/// @throws UsageError if MPI was finalised.
inline void require_not_finalised() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised != 0) [[unlikely]]
    detail::refuse_after_finalize();
}

}  // namespace rankmesh::mpi
