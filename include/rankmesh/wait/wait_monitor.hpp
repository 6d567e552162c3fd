// SPDX-License-Identifier: BSD-3-Clause
// Waits with a deadline. After the deadline, such a wait finds out which ranks are missing.
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
/// A rank that waits in this class answers the questions of other ranks. When the deadline of a
/// rank passes, this rank asks the other members of its wait point what they are doing:
/// - A member that waits at the same point is present.
/// - A member that waits at another point is reported together with that point.
/// - A member that does not answer is missing.
///
/// The rank sends its verdict to the members that are present, so that they throw the same error.
/// If the deadlines of several ranks pass at the same moment, each of these ranks may reach its own
/// verdict.
///
/// The cost is two calls of MPI_Iprobe per 64 polls. After the deadline, each member receives a
/// question of 88 bytes and sends an answer of the same size.
///
/// The monitor sends its messages on the given communicator with the tags 32765 to 32767. If the
/// program uses the same communicator, the monitor receives no message until a wait has lasted 5 s,
/// or half of the time until its deadline if that is shorter. After this time, the monitor receives
/// only messages that have exactly the size of its own messages, and it discards those that lack
/// its mark.
///
/// Only one thread at a time may use an object of this class.
class RANKMESH_API WaitMonitor {
 public:
  /// Says who uses the communicator: only the monitor (`own`), or the program as well (`shared`).
  enum class Audience : std::uint8_t { own, shared };

  /// @param names  the object that describes the ranks of the communicator in messages.
  WaitMonitor(mpi::CommunicatorView comm, Audience audience, RankNames names);

  /// Polls until all requests are complete.
  /// @throws TimeoutError if the deadline passes. The error names the missing ranks. The requests
  /// are then still active, so MPI may still use their memory.
  void wait(std::span<MPI_Request> requests, const WaitPoint& point, const Deadline& deadline);
  /// Polls until `done` returns true. Exceptions that `done` throws leave this function.
  /// @throws TimeoutError if the deadline passes. The error names the missing ranks.
  void wait(const std::function<bool()>& done, const WaitPoint& point, const Deadline& deadline);

  /// Makes the other members throw a TimeoutError that contains `reason`. This applies to members
  /// that already wait at this point and to members that reach it later. A rank calls this function
  /// if it has failed and will not complete the operation. The function does not wait for other
  /// ranks.
  void give_up(const WaitPoint& point, const std::string& reason);

 private:
  void serve(const WaitPoint& point);
  bool conclude(const std::function<bool()>& done, const WaitPoint& point,
                const Deadline& deadline);
  [[nodiscard]] std::string absence_text(const std::vector<Rank>& missing,
                                         const std::vector<std::string>& elsewhere) const;

  mpi::CommunicatorView comm_;
  Audience audience_;
  std::uint64_t questions_ = 0;  // number of the last question, which its answers repeat
  RankNames names_;
};

}  // namespace rankmesh
