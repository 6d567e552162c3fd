// One NCCL communicator per group, from unique IDs broadcast over the groups' MPI communicators.
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

/// One group that this rank is in and wants a communicator for.
struct BootstrapRequest {
  std::string name;
  std::string identity;        ///< the same on all members, and of no other bootstrap
  RankSet ranks;               ///< of the world
  mpi::CommunicatorView comm;  ///< the same members in the same order
  int leader = 0;              ///< rank in group who makes the first ID
  int ids = 1;  ///< unique IDs; the k-th is made k * size / ids ranks after the leader
  GroupOptions options{};
};

/// One split in which this rank takes part.
struct SplitRequest {
  std::string name;
  std::string identity;
  Communicator* parent = nullptr;
  RankSet parent_ranks;         ///< of the world
  std::optional<int> colour{};  ///< nothing: this rank is in no child
  int key = 0;
  GroupOptions options{};
};

/// Seconds that this rank spent in each phase.
struct BootstrapTimes {
  double unique_ids = 0, broadcasts = 0, barriers = 0, inits = 0, splits = 0;
};

/// Collective over all members of all requests, which come in plan order on every rank.
///
/// Phases, all groups at once in each: the leaders make the unique IDs (each opens a socket and a
/// thread); one MPI_Ibcast of 132 bytes per ID; one MPI_Ibarrier per group, because a broadcast may
/// leave progress to do that an init would then starve; agreement; all inits, non-blocking and
/// polled together; agreement. Every wait ends by the deadline.
/// @throws TimeoutError naming the group, the phase and the ranks that did not come; what
/// Participants::verify() throws where a rank failed.
///         Communicators that were begun are aborted.
RANKMESH_API std::vector<std::unique_ptr<Communicator>> bootstrap(
    const Library& library, std::span<const BootstrapRequest> requests, WaitMonitor& monitor,
    const Participants& participants, BootstrapTimes& times);

/// Splits one after the other, in the order given, which is the same on every rank; then agreement.
/// The parents are idle. A null in the result is a split in which this rank got no child.
/// @throws as bootstrap(); the parents of a failed split are then aborted too, since NCCL leaves
/// them unusable.
RANKMESH_API std::vector<std::unique_ptr<Communicator>> split(
    std::span<const SplitRequest> requests, WaitMonitor& monitor, const Participants& participants,
    BootstrapTimes& times);

}  // namespace rankmesh::nccl
