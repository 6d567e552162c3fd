// SPDX-License-Identifier: BSD-3-Clause
// The communicator of a group, for the program's own calls of MPI.
#include <vector>

#include "detail/call_dispatcher.hpp"

namespace rankmesh::detail {

MPI_Comm CallDispatcher::native_mpi() {
  require_open("take the handle before close()");
  if (connection_->comm()) return connection_->comm().native();
  // MPI's function waits for ever if a member does not call it. The barrier waits with a deadline,
  // and its comparison finds members that make another call instead.
  run({.operation = Operation::barrier, .family = family()});
  const CallLock lock{*runtime_};
  const GroupDescription& group = connection_->group;
  std::vector<int> members;
  for (const Rank rank : group.ranks) members.push_back(static_cast<int>(rank.value()));
  connection_->own(mpi::create_group(runtime_->control->comm(), members, group.creation_tag()));
  return connection_->comm().native();
}

}  // namespace rankmesh::detail
