// SPDX-License-Identifier: BSD-3-Clause
#include "detail/communicators.hpp"

#include <utility>

#include <fmt/format.h>

#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

GroupCommunicator make_communicator(const GroupDescription& group,
                                    const mpi::CommunicatorView& mesh) {
  if (group.ranks.size() == 1) return {{}, mpi::CommunicatorView{MPI_COMM_SELF}};
  // The tag is one of those that every MPI supports. Groups that have the same tag do not meet,
  // because members create their common groups in the same order.
  constexpr std::int64_t tags = 1 << 14;
  try {
    mpi::Communicator owned =
        mpi::create_group(mesh, group.ranks_of_mesh(), static_cast<int>(group.number % tags));
    const mpi::CommunicatorView view = owned.view();
    return {std::move(owned), view};
  } catch (const mpi::MpiError& error) {
    throw mpi::MpiError{
        error.code(),
        fmt::format("the communicator of '{}' cannot be created: {}", group.name, error.message()),
        "a process can have a limited number of communicators, in MPICH about 2,000: close groups "
        "and meshes that are no longer used, and free the program's own communicators"};
  }
}

}  // namespace rankmesh::detail
