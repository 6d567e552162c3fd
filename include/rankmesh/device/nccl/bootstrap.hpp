// SPDX-License-Identifier: BSD-3-Clause
// Creates the NCCL communicators of a mesh.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/call_watch.hpp"
#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/agreement.hpp"

namespace rankmesh::nccl {

/// Describes a group of this rank that needs a communicator.
struct BootstrapRequest {
  std::string name;  ///< The name of the group in messages.
  /// A text that is the same on all members, and that no other bootstrap uses.
  std::string identity;
  RankSet ranks;               ///< The ranks of the group in the world.
  mpi::CommunicatorView comm;  ///< An MPI communicator with the same ranks in the same order.
  int leader = 0;              ///< The rank in the group that creates the first unique ID.
  int ids = 1;  ///< The number of IDs. ID k is created by the rank k * size / ids after the leader.
  GroupOptions options{};  ///< The options of NCCL for this group.
};

/// Describes a split in which this rank takes part.
struct SplitRequest {
  std::string name;                ///< The name of the group in messages.
  std::string identity;            ///< A text that is the same on all ranks of the parent.
  Communicator* parent = nullptr;  ///< The communicator that is split.
  RankSet parent_ranks;            ///< The ranks of the parent in the world.
  std::optional<int> colour{};     ///< If `colour` is empty, this rank gets no child.
  int key = 0;  ///< Determines the order of the ranks in the child, as in MPI_Comm_split.
  GroupOptions options{};  ///< The options of NCCL for the child.
};

/// The seconds that this rank spent in each phase.
struct BootstrapTimes {
  double unique_ids = 0;  ///< The time to create the unique IDs.
  double broadcasts = 0;  ///< The time to broadcast the unique IDs.
  double barriers = 0;    ///< The time in the barriers of the groups.
  double inits = 0;       ///< The time in the initialisations of NCCL.
  double splits = 0;      ///< The time in the splits of NCCL.
};

/// Creates one communicator per request. Collective over the participants. Each participant passes
/// its requests in the order of the plan. The function blocks. The deadline of the participants
/// limits every wait.
///
/// Each phase runs for all groups at once:
/// 1. The leaders create the unique IDs. NCCL opens a socket and starts a thread for each ID.
/// 2. The leaders broadcast the IDs with one MPI_Ibcast of 132 bytes per ID.
/// 3. The members of each group call one MPI_Ibarrier. Without this barrier, a rank whose part of
///    the broadcast is complete could enter NCCL's init before MPI has forwarded the data to the
///    next rank. MPI makes no progress during NCCL's init.
/// 4. The participants make an agreement (Agreement).
/// 5. The inits of NCCL run. They are non-blocking, begin in one NCCL group and are polled
/// together.
/// 6. The participants make another agreement.
///
/// @param comms  Gets one communicator per request. After an exception, the caller aborts those
/// that it has got.
/// @throws TimeoutError if the deadline passes. The error names the group, the phase and the
/// missing ranks.
/// @throws MismatchError on all participants if a rank has failed. The error names the ranks that
/// failed.
RANKMESH_API void bootstrap(const Library& library, std::span<const BootstrapRequest> requests,
                            WaitMonitor& monitor, const Participants& participants,
                            BootstrapTimes& times,
                            std::vector<std::unique_ptr<Communicator>>& comms);

/// Splits a blocking communicator of the same ranks from each of the communicators. The splits run
/// side by side, in one NCCL group. They are polled, so they have a deadline. Afterwards the
/// participants make an agreement. Collective over the participants; blocks.
///
/// Each call on a non-blocking communicator starts a thread and joins it (ncclGroupEndInternal in
/// src/group.cc, NCCL 2.23 and later). A blocking communicator avoids this thread, but its creation
/// has no deadline. A split combines both: the call that splits has the mode of the parent, and the
/// child has the mode of its own configuration (ncclCommInitChildComm in src/init.cc). Call
/// release() for the originals afterwards.
/// @param requests  Each gives all members one child, in their order.
/// @param children  Gets one communicator per request. After an exception, the caller aborts the
/// originals, and then the children, to which NCCL still writes.
/// @throws TimeoutError if the deadline passes; MismatchError if a rank has failed.
RANKMESH_API void make_blocking(std::span<const SplitRequest> requests, WaitMonitor& monitor,
                                const Participants& participants, BootstrapTimes& times,
                                std::vector<std::unique_ptr<Communicator>>& children);

/// Finalises and destroys communicators that bootstrap() has created. Collective over the members
/// of each of them, in the same order on all ranks.
/// @param mesh  Whose communicators they are; see Communicator::wait_until_ready().
RANKMESH_API void release(std::span<const std::unique_ptr<Communicator>> originals,
                          const Deadline& deadline, const rankmesh::detail::ControlPlane& mesh);

/// Makes the splits one after the other, in the order of `requests`, which must be the same on
/// every rank. Afterwards the participants make an agreement. Collective over the participants;
/// blocks. The parents must have no work in flight.
/// @param watch  Limits the splits of blocking parents.
/// @param children  Gets one communicator per request, or null for each request in which this rank
/// gets no child. After an exception, the caller aborts all parents, because NCCL leaves the parent
/// of a failed split unusable, and then the children, to which NCCL still writes.
/// @throws TimeoutError if the deadline passes; MismatchError if a rank has failed.
RANKMESH_API void split(std::span<const SplitRequest> requests, WaitMonitor& monitor,
                        const Participants& participants, CallWatch& watch, BootstrapTimes& times,
                        std::vector<std::unique_ptr<Communicator>>& children);

}  // namespace rankmesh::nccl
