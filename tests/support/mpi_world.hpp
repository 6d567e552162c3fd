// SPDX-License-Identifier: BSD-3-Clause
// The job of a multi-rank test.
#pragma once

#include <string>

#include "rankmesh/base/deadline.hpp"

namespace rankmesh_test {

int rank();
int size();

/// Waits for all ranks without using a core, unlike MPI_Barrier. Use it where ranks may wait long.
void wait_for_all();

/// Returns whether all ranks pass the same text as rank 0. Collective over the world; ranks may get
/// different results.
bool is_same_as_on_first(const std::string& text);

/// Returns the rank that misbehaves in tests that need one.
inline int last() { return size() - 1; }

/// A deadline for a wait that must end by it. With more than two ranks it is longer: a busy machine
/// stops a rank for a second now and then, and the members that do come must come in time, so that
/// only the one that stays away is named. For the same reason, let the ranks meet in wait_for_all()
/// or in a collective just before the wait.
inline rankmesh::Deadline::Duration short_deadline() {
  return rankmesh::Deadline::Duration{size() > 2 ? 1.5 : 1.0};
}

}  // namespace rankmesh_test
