// SPDX-License-Identifier: BSD-3-Clause
// Reports calls that take long, and ranks that have ended, without MPI.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/detail/log.hpp"
#include "node_board.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

class Watchdog;

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
  WatchedMesh(std::shared_ptr<NodeBoard> board, std::shared_ptr<const Log> log, RankNames names,
              double stall);
  ~WatchedMesh();
  WatchedMesh(const WatchedMesh&) = delete;
  WatchedMesh& operator=(const WatchedMesh&) = delete;

  /// Returns what has to be reported now; usually nothing. The thread calls it.
  [[nodiscard]] std::vector<std::string> reports();
  [[nodiscard]] const std::shared_ptr<const Log>& log() const { return log_; }

 private:
  [[nodiscard]] std::string stalled_call();
  void add_ended_ranks(std::vector<std::string>& texts) const;

  pid_t process_;
  std::shared_ptr<Watchdog> watchdog_;  // null if its thread could not start
  const std::shared_ptr<NodeBoard> board_;
  const std::shared_ptr<const Log> log_;
  const RankNames names_;
  const double stall_;
  double next_report_;
};

}  // namespace rankmesh::detail
