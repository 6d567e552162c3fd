// SPDX-License-Identifier: BSD-3-Clause
// Errors of calls that their callers know by their type, or that several transports throw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

inline constexpr const char* length_hint =
    "send and receive the same number of elements of the same type";

/// The error of a message that has another length than its receiver expects. The operation is
/// complete, and the group stays usable. A transport does not know the names of groups, so its
/// caller adds the name of the call.
class WrongLength final : public UsageError {
 public:
  /// @param received  The length in bytes, if it is known.
  WrongLength(std::optional<std::int64_t> received, std::int64_t expected);
  /// For a message whose elements have another type.
  explicit WrongLength(std::string text);
  /// Throws the same error with the activity in front.
  [[noreturn]] void throw_in(const std::string& activity) const;

  /// Returns the error of a receive that MPI has ended with `code`, or nothing if `code` says that
  /// something else is wrong.
  static std::optional<WrongLength> of(int code, const MPI_Status& status, std::int64_t expected);
};

/// The error of a rank on which a user's reduction has thrown. The operation is complete, but its
/// values are invalid on all members, and MPI cannot tell this to the other members. Therefore the
/// rank that throws this error gives up the group. std::throw_with_nested() derives from this
/// class, so it is not final.
class FailedReduction : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Returns the error of a call that needs more memory than its buffers, and gets none.
/// @param activity  The call in the words of the program.
inline Error too_little_memory(const std::string& activity, const Call& call) {
  return Error{fmt::format("{}: there is too little memory for {} bytes of buffers", activity,
                           call.in.bytes() + call.out.bytes()),
               "use smaller pieces, or give the job more memory"};
}

}  // namespace rankmesh::detail
