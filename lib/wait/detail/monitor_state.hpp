// SPDX-License-Identifier: BSD-3-Clause
// What a wait monitor remembers between its waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node_board.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "small_messages.hpp"
#include "wait_messages.hpp"

namespace rankmesh::detail {

/// The state of one WaitMonitor, and the messages that it exchanges.
///
/// A rank sends a question to each member of its wait point on another node. A member that waits at
/// any point answers with this wait point. The same key means that it is present; another key means
/// that it waits for something else. A member that has given up the point answers with a verdict. A
/// member that does not answer is silent: it has ended, computes, or is blocked outside of
/// rankmesh. Nothing else can be assumed of it, so no message here waits for its receiver.
struct MonitorState {
  mpi::CommunicatorView comm;
  WaitMonitor::Audience audience;
  RankNames names;
  const ControlPlane* control;            ///< Of the mesh; null if there is none.
  std::uint64_t mark;                     ///< Of its messages.
  std::uint64_t questions = 0;            ///< The number asked so far; each answer repeats it.
  std::deque<Received<Verdict>> heard{};  ///< Verdicts that end later waits of this rank.
  std::deque<Verdict> given_up{};  ///< What this rank has given up, with the message for the other
                                   ///< ranks.
  std::map<std::uint64_t, std::uint64_t> failures{};  ///< Of its waits, by the key of the point.

  /// On a shared communicator: the messages that this rank has sent, per member (empty if none),
  /// and the number of those that it has received. See WaitMonitor::receive_leftovers().
  std::vector<int> sent{};
  int taken = 0;

  /// Sends a message to a member, and does not wait for it.
  template <class Message>
  void send(int member, int tag, Message message) {
    message.mark = mark;
    if (audience == WaitMonitor::Audience::shared) {
      sent.resize(static_cast<std::size_t>(comm.size()));
      ++sent[static_cast<std::size_t>(member)];
    }
    send_and_forget(comm, member, tag, message);
  }
  /// Receives a message if one has arrived.
  template <class Message>
  std::optional<Received<Message>> take(int tag) {
    auto message = receive<Message>(comm, tag, mark);
    if (message) ++taken;
    return message;
  }
  /// Returns the rank's number in the mesh.
  [[nodiscard]] Rank in_mesh(int member) const { return names.in_mesh(Rank{member}); }
  [[nodiscard]] std::vector<Rank> in_mesh(const std::vector<int>& members) const;
  /// Returns the board of this rank's node; null if there is none yet.
  [[nodiscard]] NodeBoard* board() const;
  /// Returns what the board says about a member; nothing if it is not on this node.
  [[nodiscard]] std::optional<RankStatus> look(int member) const;
  /// Returns the number of this rank's attempt at a point, from 1. After a failure, the members may
  /// wait there again, while verdicts about the failure are still on their way. Those that have
  /// failed together have the same number; one that has not come yet has a lower one.
  [[nodiscard]] std::uint64_t attempt_at(std::uint64_t key) const;
  /// Says that this rank has given up a point, and why.
  [[nodiscard]] std::string gave_up(const WaitPoint& point, const std::string& reason) const;

  /// Returns a question or an answer.
  /// @param point  The point at which this rank waits.
  [[nodiscard]] Note note_of(const WaitPoint& point, std::uint64_t number) const;
  /// Answers the questions that have arrived.
  /// @param point  The point at which this rank waits.
  void answer(const WaitPoint& point);
  /// Receives verdicts, and throws if one concerns this point. If a member of the point has left,
  /// returns its verdict, because this member may have completed its part before. Otherwise returns
  /// null.
  const Verdict* hear(const WaitPoint& point);
  /// Tells all other members that this rank has given up, and remembers it.
  /// @param why      The message for members that reach the point later.
  /// @param finding  The message and the missing ranks for members that wait at the same point.
  void tell(const WaitPoint& point, const std::string& why, const Verdict& finding,
            const std::vector<int>& present);
  /// Returns a verdict of this rank for a member that reaches the point later. The missing ranks
  /// are the others that were missing; if there were none, the rank that gave up.
  [[nodiscard]] Verdict for_late_member(int member, Verdict verdict) const;
  /// Forgets that this rank has given up the point, because it waits there again.
  void come_back(const WaitPoint& point);
  /// Remembers a verdict as the end of this rank's attempt.
  void end_attempt(Verdict verdict, std::uint64_t key);
  /// Throws the verdict as the end of the wait at this point.
  [[noreturn]] void throw_verdict(const WaitPoint& point, const Verdict& verdict);
};

}  // namespace rankmesh::detail
