// SPDX-License-Identifier: BSD-3-Clause
// Reports calls that take long, and ranks that have ended, without MPI.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/detail/log.hpp"
#include "node_board.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

class Watchdog;
struct WatchedBoard;

/// Adds the board of a mesh to those that the watchdog of this process reads, as long as this
/// object exists. The first object starts the watchdog's thread, and the last one joins it.
///
/// The thread calls no function of MPI. It wakes up four times per second. It reports a rank of
/// this process that is in one call of MPI for longer than the stall time, and the rank after this
/// one on the node if its process has ended. All signals are blocked in the thread. A child process
/// after fork() has no watchdog. If the thread cannot start, the log gets a warning, and this
/// object does nothing.
class RANKMESH_API WatchedMesh {
 public:
  WatchedMesh(std::shared_ptr<NodeBoard> board, std::shared_ptr<const Log> log,
              const RankNames& names, double stall);
  ~WatchedMesh();
  WatchedMesh(const WatchedMesh&) = delete;
  WatchedMesh& operator=(const WatchedMesh&) = delete;

 private:
  pid_t process_;
  std::shared_ptr<Watchdog> watchdog_;  ///< Null if its thread could not start.
  std::shared_ptr<WatchedBoard> board_;
};

}  // namespace rankmesh::detail
