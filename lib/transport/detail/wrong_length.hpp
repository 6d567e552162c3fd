// SPDX-License-Identifier: BSD-3-Clause
// The error of a message that has another length than its receiver expects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::detail {

/// The operation is complete, and the group stays usable. A transport does not know the names of
/// groups, so its caller adds the name of the call.
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

}  // namespace rankmesh::detail
