// SPDX-License-Identifier: BSD-3-Clause
// The communicator of rankmesh's own messages, and how the ranks of a mesh agree and wait on it.
#pragma once

#include <cstdint>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/log.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh::detail {

/// One per mesh. The parts of a mesh share it; it knows none of them.
class ControlPlane {
 public:
  /// Takes a duplicate of the user's communicator.
  ControlPlane(mpi::Communicator comm, RankNames rank_names, Deadline::Duration timeout_of_waits,
               LogSink log_sink)
      : names{std::move(rank_names)},
        timeout{timeout_of_waits},
        monitor{comm.view(), WaitMonitor::Audience::own, names},
        log_sink_{std::move(log_sink)},
        comm_{std::move(comm)} {}

  const RankNames names;
  const Deadline::Duration timeout;  ///< Of rankmesh's own waits.
  WaitMonitor monitor;
  std::int64_t queues = 0;  ///< Control queues made so far; they choose the queues' tags.

  [[nodiscard]] const mpi::CommunicatorView& comm() const { return comm_.view(); }
  [[nodiscard]] Rank rank() const { return Rank{comm().rank()}; }
  [[nodiscard]] Deadline deadline() const { return Deadline{timeout}; }
  /// All ranks of the mesh.
  [[nodiscard]] Participants all() { return {comm(), &monitor, timeout}; }
  void log(LogLevel level, const std::string& message) const {
    if (log_sink_) log_sink_(level, message);
  }
  /// Frees the communicator. Collective over the mesh; nothing may be sent afterwards.
  void close() { comm_.free(); }

 private:
  LogSink log_sink_;
  mpi::Communicator comm_;
};

}  // namespace rankmesh::detail
