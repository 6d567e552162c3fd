// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/batch.hpp"

#include <algorithm>
#include <optional>

#include "rankmesh/device/stream.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::nccl {

namespace {

thread_local const Batch* open_here = nullptr;

}  // namespace

Batch::~Batch() {
  if (open_here == this) open_here = nullptr;
}

void Batch::require_no_other(const Batch* mine) {
  if (open_here != nullptr && open_here != mine)
    throw UsageError{"an NcclGroup of another mesh is open, and this call would join it",
                     "end the NcclGroup of the other mesh first"};
}

void Batch::begin() {
  if (open_here != nullptr)
    throw UsageError{"an NCCL group is begun inside another",
                     "end the first group before the second one begins"};
  watch_->enter();
  try {
    library_->check(library_->GroupStart(), "ncclGroupStart");
  } catch (...) {
    watch_->exit();
    throw;
  }
  members_.clear();
  is_relaxed_ = false;
  open_ = true;
  open_here = this;
}

void Batch::add(Communicator& comm) {
  if (!members_.empty() && members_.front()->is_blocking() != comm.is_blocking()) {
    issue(default_timeout());
    watch_->exit();  // throws if the communicators were aborted
    watch_->enter();
    members_.clear();
    library_->check(library_->GroupStart(), "ncclGroupStart");
  }
  if (std::ranges::find(members_, &comm) == members_.end()) members_.push_back(&comm);
}

void Batch::end(const Deadline& deadline) {
  open_ = false;
  open_here = nullptr;
  try {
    std::optional<device::Claim::Issuing> alone;
    try {
      alone.emplace(claim_);
    } catch (const UsageError&) {
      (void)library_->GroupEnd();  // the thread must leave NCCL's group
      throw;
    }
    issue(deadline.left());
  } catch (...) {
    watch_->exit();  // throws if an abort is the reason
    throw;
  }
  watch_->exit();
}

// Ends NCCL's group. The thread has left the group even after an exception.
void Batch::issue(Deadline::Duration limit) {
  const bool blocks = !members_.empty() && members_.front()->is_blocking();
  if (blocks) watch_->limit(members_, limit);
  std::optional<device::RelaxedCaptureMode> relaxed;
  if (std::exchange(is_relaxed_, false)) relaxed.emplace();
  const ncclResult_t code = library_->GroupEnd();
  library_->check(code, "ncclGroupEnd");
  if (code != ncclInProgress) return;
  const Deadline deadline{limit};
  for (const Communicator* comm : members_) comm->wait_until_ready(deadline, control_.get());
}

}  // namespace rankmesh::nccl
