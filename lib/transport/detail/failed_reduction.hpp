// SPDX-License-Identifier: BSD-3-Clause
// The error of a rank on which a user's reduction has thrown.
#pragma once

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {

/// The operation is complete, but its values are invalid on all members, and MPI cannot tell this
/// to the other members. Therefore the rank that throws this error gives up the group.
/// std::throw_with_nested() derives from this class, so it is not final.
class FailedReduction : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace rankmesh::detail
