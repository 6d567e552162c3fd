// Errors of the MPI library.
#pragma once

#include <source_location>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// A call into MPI that did not return MPI_SUCCESS; keeps the native code.
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

/// Every MPI return value goes through here.
/// @throws MpiError with MPI's own text, the function and the place of the call.
inline void check(int code, const char* function,
                  const std::source_location& where = std::source_location::current()) {
  if (code != MPI_SUCCESS) [[unlikely]]
    detail::fail(code, function, where);
}

/// Whether MPI can be called: initialised and not finalised.
RANKMESH_API bool is_active();

}  // namespace rankmesh::mpi
