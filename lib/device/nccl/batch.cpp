// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/batch.hpp"

#include <algorithm>
#include <optional>

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
                     "end that group first"};
}

void Batch::begin() {
  if (open_here != nullptr)
    throw UsageError{"an NCCL group is begun inside another", "end the first before the second"};
  library_->check(library_->GroupStart(), "ncclGroupStart");
  members_.clear();
  open_ = true;
  open_here = this;
}

void Batch::add(Communicator& comm) {
  if (std::ranges::find(members_, &comm) == members_.end()) members_.push_back(&comm);
}

void Batch::end(const Deadline& deadline) {
  open_ = false;
  open_here = nullptr;
  std::optional<device::Claim::Issuing> alone;
  try {
    alone.emplace(claim_);
  } catch (const UsageError&) {
    (void)library_->GroupEnd();  // the thread must leave NCCL's group
    throw;
  }
  library_->check(library_->GroupEnd(), "ncclGroupEnd");
  for (const Communicator* comm : members_) comm->wait_until_ready(deadline);
}

}  // namespace rankmesh::nccl
