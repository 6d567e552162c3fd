// SPDX-License-Identifier: BSD-3-Clause
// Waits with a deadline that find out which ranks are missing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "rankmesh/wait/wait_point.hpp"

namespace rankmesh {

/// Waits with a deadline, and names the missing ranks once the deadline has passed. torch's
/// `monitored_barrier` does this for a barrier; this class does it for any wait.
///
/// A rank that waits in this class answers the questions of other ranks. When its deadline passes,
/// it asks the other members of the wait point what they are doing. A member that waits at the same
/// point is present; a member that waits at another point is reported with that point; a member
/// that does not answer is missing. The finding is sent to the members that are present, so that
/// they throw the same error. Ranks whose deadlines pass at the same moment find the missing ranks
/// independently of each other.
///
/// Cost: one MPI_Iprobe per 64 polls. After a timeout, each member gets a message of 88 bytes and
/// answers with another message.
///
/// Messages travel on the given communicator with the tags 32765 to 32767. On a communicator that
/// is shared with the user's program, the monitor receives nothing before a wait has lasted 5 s (or
/// half of its deadline). After that, it receives only messages that have exactly its own size and
/// its own mark.
///
/// Thread safety: one thread at a time.
class RANKMESH_API WaitMonitor {
 public:
  /// Says whose messages travel on the communicator: only messages of the monitor (`own`), or
  /// messages of the user's program as well (`shared`).
  enum class Audience : std::uint8_t { own, shared };

  /// @param names  The names of the communicator's ranks in messages.
  WaitMonitor(mpi::CommunicatorView comm, Audience audience, RankNames names);

  /// Polls until all requests are complete.
  /// @throws TimeoutError  The error names the missing ranks. The requests are then still active,
  ///                       so MPI may still use their memory.
  void wait(std::span<MPI_Request> requests, const WaitPoint& point, const Deadline& deadline);
  /// Polls until `done` returns true. @throws TimeoutError, and every exception that `done` throws.
  void wait(const std::function<bool()>& done, const WaitPoint& point, const Deadline& deadline);

  /// Makes every other member that waits at this point, or later comes to it, throw a TimeoutError
  /// that contains `reason`. Local; call it when this rank has failed and will not complete the
  /// operation.
  void give_up(const WaitPoint& point, const std::string& reason);

 private:
  void serve(const WaitPoint& point);
  bool conclude(const std::function<bool()>& done, const WaitPoint& point,
                const Deadline& deadline);
  [[nodiscard]] std::string absence_text(const std::vector<Rank>& missing,
                                         const std::vector<std::string>& elsewhere) const;

  mpi::CommunicatorView comm_;
  Audience audience_;
  std::uint64_t questions_ = 0;  // the number asked so far; each answer repeats it
  RankNames names_;
};

}  // namespace rankmesh
