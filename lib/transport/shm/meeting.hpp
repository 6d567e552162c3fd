// SPDX-License-Identifier: BSD-3-Clause
// The step in shared memory that comes before a call that MPI carries.
#pragma once

#include "transport/shm/algorithm.hpp"

namespace rankmesh::shm {

/// The comparison step of a call that MPI will carry. In this step in shared memory, the members
/// compare their calls and the counts of v-forms. No member enters MPI before all members have
/// reached the step.
struct Meeting : Call {
  /// @param starts  Whether this member uses the form with _async.
  Meeting(const Call& call, bool starts) : Call{call} { is_async = starts; }

  /// Whether any member uses the form with _async. It is valid once the meeting is complete. MPI
  /// does not match a blocking collective with a non-blocking one, so all members must know this.
  mutable bool any_is_async = false;
};

/// The algorithm of meetings. Its calls must be Meetings.
extern const Algorithm meeting;

}  // namespace rankmesh::shm
