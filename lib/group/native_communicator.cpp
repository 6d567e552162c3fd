// SPDX-License-Identifier: BSD-3-Clause
// The communicator of a group, for the program's own calls of MPI.
#include "detail/call_dispatcher.hpp"

namespace rankmesh::detail {

// The tag is one of those that every MPI supports. Members create their common groups in the same
// order, so groups that have the same tag do not meet.
mpi::Communicator create_communicator(const GroupDescription& group,
                                      const mpi::CommunicatorView& mesh) {
  constexpr std::int64_t tags = 1 << 14;
  return mpi::create_group(mesh, group.ranks_of_mesh(), static_cast<int>(group.number % tags));
}

MPI_Comm CallDispatcher::native_mpi() {
  require_open("take the handle before close()");
  if (connection_->comm()) return connection_->comm().native();
  // MPI's function waits for ever if a member does not call it. The barrier waits with a deadline,
  // and its comparison finds members that make another call instead.
  run({.operation = Operation::barrier, .family = family()});
  const CallLock lock{*runtime_};
  connection_->own(create_communicator(connection_->group, runtime_->control->comm()));
  return connection_->comm().native();
}

}  // namespace rankmesh::detail
