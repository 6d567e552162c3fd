// SPDX-License-Identifier: BSD-3-Clause
// Access to the private parts of a Work, for other parts of rankmesh.
#pragma once

#include "rankmesh/group/work.hpp"

namespace rankmesh::detail {

/// Gives functions that test several operations access to the private parts of Work.
struct WorkAccess {
  /// Does the same as Work::test(), but advances no other operations.
  static bool test_alone(Work& work) { return work.test_alone(); }
};

}  // namespace rankmesh::detail
