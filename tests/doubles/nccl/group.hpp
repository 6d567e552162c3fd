// SPDX-License-Identifier: BSD-3-Clause
// Group calls: per thread, what is called between start and end is put off to the outermost end. A
// call outside a group is a group of one.
#pragma once

#include "comm.hpp"
#include "operation.hpp"

namespace fake {

// Something other than an operation on a stream: an init, a split, an abort.
struct Job {
  CommPtr comm;  // whose owner polls; for a split the parent
  bool blocking = true;
  std::function<Outcome()> body;
  std::function<void()> deliver = {};  // after success: gives the caller what was made
  std::function<void()> undo = {};     // where the group fails before anything was done
  bool local = false;  // abort, destroy: ends before the call returns, whatever `blocking` says
};

Outcome group_start();
ncclResult_t group_end();
bool is_in_group();

// Adds to the group of this thread, or does it at once. A failure inside a group fails the group.
ncclResult_t add(Outcome checked, const CommPtr& comm, const Operation& operation);
ncclResult_t add(Outcome checked, Job job);

// What the real library forgets to undo when an init cannot find its device.
void forget_one_end();

}  // namespace fake
