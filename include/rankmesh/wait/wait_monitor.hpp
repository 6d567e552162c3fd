// SPDX-License-Identifier: BSD-3-Clause
// Waits with a deadline that find out which ranks are missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "rankmesh/wait/wait_point.hpp"

namespace rankmesh {

namespace detail {
struct MonitorState;
class ControlPlane;
}  // namespace detail

/// Waits with a deadline, and says what the missing ranks do once the deadline has passed.
///
/// A rank that waits in this class publishes its wait, and answers the questions of ranks on other
/// nodes (docs/design.md, "Waits have deadlines"). It therefore tells apart members that have
/// ended, are stopped, are not in rankmesh, or wait at another point. The error is thrown at most
/// half a second after the deadline, and other members that wait at the same point throw the same
/// one. If a member on this node has ended, or has left the mesh by an exception, the wait ends
/// within a second, regardless of its deadline.
///
/// Messages travel on the given communicator with the tags 32765 to 32767, which the program must
/// not use there. receive_leftovers() clears the communicator.
///
/// Cost: see docs/design.md ("Costs").
///
/// Thread safety: one thread at a time.
class RANKMESH_API WaitMonitor {
 public:
  /// Says whose messages travel on the communicator: only messages of the monitor (`own`), or
  /// messages of the user's program as well (`shared`).
  enum class Audience : std::uint8_t { own, shared };

  /// @param names  The names of the communicator's ranks in messages.
  /// @param control  The mesh, which has the board of the node and the log; it must outlive the
  /// monitor. Without it, a monitor can say less about missing ranks, and reports no stalls.
  /// @param number  The same on all ranks, and different for monitors that use one communicator one
  /// after the other: each of them ignores the messages of the others.
  WaitMonitor(mpi::CommunicatorView comm, Audience audience, RankNames names,
              const detail::ControlPlane* control = nullptr, std::uint64_t number = 0);
  ~WaitMonitor();
  /// Takes over the monitor. The source can then only be destroyed or assigned to.
  WaitMonitor(WaitMonitor&&) noexcept;
  /// Takes over the monitor. The source can then only be destroyed or assigned to.
  WaitMonitor& operator=(WaitMonitor&&) noexcept;

  /// Polls until all requests are complete.
  /// @throws TimeoutError if the deadline has passed. The error says what the missing ranks do.
  /// @throws PeerError if a member has failed or has given up. After either error, the requests are
  /// still active, so MPI may still use their memory.
  void wait(std::span<MPI_Request> requests, const WaitPoint& point, const Deadline& deadline);
  /// Polls until `done` returns true.
  /// @throws TimeoutError, PeerError, and every exception that `done` throws. After an exception
  /// that is not a
  ///         UsageError, this rank has given up the point; see give_up().
  void wait(const std::function<bool()>& done, const WaitPoint& point, const Deadline& deadline);

  /// Makes every other member that waits at this point, or reaches it later, throw a PeerError
  /// that contains `reason`. Local; call it when this rank has failed and will not complete the
  /// operation. A second call for the same point does nothing, unless this rank has waited at the
  /// point again.
  void give_up(const WaitPoint& point, const std::string& reason);
  /// Does the same with the first cause of an error, as a wait does whose condition throws it.
  void give_up(const WaitPoint& point, const Error& error);
  /// Throws a PeerError if another member has given up this point, or has sent a verdict on it.
  /// Local; it receives the messages that have arrived.
  void require_not_given_up(const WaitPoint& point);
  /// Returns whether this monitor has sent messages. Local.
  [[nodiscard]] bool has_sent() const;
  /// Receives the messages that the other monitors have already sent to this rank, so that none is
  /// left for the program on a shared communicator. Collective over the communicator: an exchange
  /// of 4 bytes between all ranks. It is only needed if has_sent() is true on a rank.
  /// @throws TimeoutError or PeerError under the same conditions as wait().
  void receive_leftovers(const WaitPoint& point, const Deadline& deadline);
  /// Tells the ranks on other nodes that an exception has destroyed this rank's mesh, so that their
  /// waits for this rank end. Local. The ranks on this node learn it from the board.
  void leave(const std::string& reason);

  /// Returns the number in the mesh of a rank of the communicator. Local.
  [[nodiscard]] Rank in_mesh(int member) const;

  /// From now on, the other monitors of this process also answer questions about this monitor's
  /// mesh while they wait, until close() is called or this monitor is destroyed. Peers that wait
  /// for this rank then learn that it waits in another mesh. Does nothing with MPI_THREAD_MULTIPLE,
  /// because other threads may use the other monitors.
  void answer_in_other_waits();
  /// Call it before the communicator is freed; nothing is sent or received afterwards.
  void close();

 private:
  std::unique_ptr<detail::MonitorState> state_;
};

}  // namespace rankmesh
