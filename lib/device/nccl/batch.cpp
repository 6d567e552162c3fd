#include "rankmesh/device/nccl/batch.hpp"

#include <algorithm>

namespace rankmesh::nccl {

void Batch::begin() {
  if (open_) throw UsageError{"an NCCL group is begun inside another", "end the first before the second"};
  library_->check(library_->GroupStart(), "ncclGroupStart");
  members_.clear();
  open_ = true;
}

void Batch::add(Communicator& comm) {
  if (std::ranges::find(members_, &comm) == members_.end()) members_.push_back(&comm);
}

void Batch::end(const Deadline& deadline) {
  open_ = false;
  library_->check(library_->GroupEnd(), "ncclGroupEnd");
  for (const Communicator* comm : members_) comm->settle(deadline);
}

}  // namespace rankmesh::nccl
