// SPDX-License-Identifier: BSD-3-Clause
// Creates the NCCL communicators of a mesh.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/agreement.hpp"

namespace rankmesh::nccl {

/// Describes a group of this rank that needs a communicator.
struct BootstrapRequest {
  std::string name;
  /// A text that is the same on all members and differs from every other bootstrap.
  std::string identity;
  RankSet ranks;               ///< Ranks of the world.
  mpi::CommunicatorView comm;  ///< A communicator of the same members in the same order.
  int leader = 0;              ///< The rank in the group that creates the first unique ID.
  int ids =
      1;  ///< Number of unique IDs. The k-th is created k * size / ids ranks after the leader.
  GroupOptions options{};
};

/// Describes a split in which this rank takes part.
struct SplitRequest {
  std::string name;
  std::string identity;
  Communicator* parent = nullptr;
  RankSet parent_ranks;         ///< Ranks of the world.
  std::optional<int> colour{};  ///< If it is empty, this rank gets no child.
  int key = 0;
  GroupOptions options{};
};

/// The seconds that this rank spent in each phase.
struct BootstrapTimes {
  double unique_ids = 0, broadcasts = 0, barriers = 0, inits = 0, splits = 0;
};

/// Creates one communicator per request. Collective over the participants. Each participant calls
/// this function and passes the requests in the order of the plan. Blocks; the deadline of the
/// participants limits every wait.
///
/// Each phase runs for all groups at once:
/// 1. The leaders create the unique IDs. NCCL opens a socket and starts a thread for each ID.
/// 2. One MPI_Ibcast of 132 bytes per ID.
/// 3. One MPI_Ibarrier per group. It is necessary because a broadcast can complete on a rank that
///    still has to forward data to another rank, and MPI makes no progress during NCCL's init.
/// 4. An agreement.
/// 5. NCCL's inits, which are non-blocking and polled together.
/// 6. An agreement. If a rank failed, all communicators are aborted.
///
/// @throws TimeoutError  The error names the group, the phase and the missing ranks.
/// @throws MismatchError  A rank failed. All participants throw the error, which names the ranks
///                        that failed.
RANKMESH_API std::vector<std::unique_ptr<Communicator>> bootstrap(
    const Library& library, std::span<const BootstrapRequest> requests, WaitMonitor& monitor,
    const Participants& participants, BootstrapTimes& times);

/// Makes the splits one after the other, in the given order, which must be the same on every rank.
/// Then the participants make an agreement. Collective over the participants; blocks. The parents
/// must have no work in flight.
/// @return One communicator per request. It is null if this rank gets no child.
/// @throws TimeoutError, MismatchError  NCCL leaves the parent of a failed split unusable, so all
/// parents are aborted.
RANKMESH_API std::vector<std::unique_ptr<Communicator>> split(
    std::span<const SplitRequest> requests, WaitMonitor& monitor, const Participants& participants,
    BootstrapTimes& times);

}  // namespace rankmesh::nccl
