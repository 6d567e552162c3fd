// One NCCL communicator per group, from unique IDs broadcast over the groups' MPI communicators.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/roll_call.hpp"

namespace rankmesh::nccl {

/// One group that this rank is in and wants a communicator for.
struct BootstrapRequest {
  std::string name;
  RankSet ranks;               ///< of the world
  mpi::CommunicatorView comm;  ///< the same members in the same order
  int leader = 0;              ///< rank in group who makes the ID
  Config config{};
};

/// Seconds that this rank spent in each phase.
struct BootstrapTimes {
  double unique_ids = 0, broadcasts = 0, barriers = 0, inits = 0;
};

/// Settles whether this rank's phase went well on all ranks: collective over the world; throws on all of them
/// where it did not. `failure` is empty where this rank is well.
using Agree = std::function<void(const std::string& phase, const std::string& failure)>;

/// Collective over all members of all requests, which come in plan order on every rank.
///
/// Phases, all groups at once in each: the leaders make one unique ID per group (each opens a socket and a
/// thread); one MPI_Ibcast of 132 bytes per group; one MPI_Ibarrier per group, because a broadcast may leave
/// progress to do that an init would then starve; agreement; all inits, non-blocking and polled together;
/// agreement. Every wait ends by the deadline.
/// @throws TimeoutError naming the group, the phase and the ranks that did not come; what `agree` throws
/// where a rank failed.
///         Communicators that were begun are aborted.
RANKMESH_API std::vector<std::unique_ptr<Communicator>> bootstrap(const Library& library,
                                                                  std::span<const BootstrapRequest> requests,
                                                                  mpi::RollCall& roll_call,
                                                                  const Deadline& deadline,
                                                                  const Agree& agree, BootstrapTimes& times);

}  // namespace rankmesh::nccl
