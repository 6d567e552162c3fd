// SPDX-License-Identifier: BSD-3-Clause
// The messages that wait monitors exchange.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/detail/text.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_point.hpp"
#include "small_messages.hpp"

namespace rankmesh::detail {

// MPI guarantees tags up to 32767.
inline constexpr int question_tag = 32765;
inline constexpr int answer_tag = 32766;
inline constexpr int verdict_tag = 32767;
/// Returns the hint of a TimeoutError.
/// @param is_missing  Whether the error names ranks that do not wait. The others may wait because
///                    calls differ.
inline std::string timeout_hint(TimeLimit limit, bool is_missing) {
  constexpr std::array setters{"RANKMESH_TIMEOUT or MeshOptions::timeout",
                               "RANKMESH_DEADLINE or MeshOptions::deadline",
                               "the argument of the call that waits"};
  return std::string{is_missing
                         ? "check the missing ranks for a crash, another branch or an earlier error"
                         : "no rank is missing: a rank has left a call out or has made one too "
                           "many, which RANKMESH_CHECK=1 finds, or the order of calls differs, "
                           "which meshinfo trace --collect DIR shows"} +
         "; " + setters[static_cast<std::size_t>(limit) % setters.size()] + " sets the time limit";
}
/// Returns the limit that the hint of a TimeoutError names.
inline TimeLimit limit_of(const std::string& hint) {
  for (const TimeLimit limit : {TimeLimit::deadline, TimeLimit::argument})
    for (const bool is_missing : {false, true})
      if (hint.starts_with(timeout_hint(limit, is_missing)))
        return limit;  // a diagnosis may follow
  return TimeLimit::timeout;
}
inline constexpr std::uint64_t wait_mark = 0x72616e6b6d657368;  // "rankmesh"

/// A question or an answer: where its sender waits.
struct Note {
  std::uint64_t mark = wait_mark;
  std::uint64_t key = 0;
  std::uint64_t number = 0;   ///< Of the question; an answer repeats it.
  std::uint64_t scope = 0;    ///< Of the question; see WaitPoint::scope.
  std::uint64_t attempt = 0;  ///< Of the question; see MonitorState::attempt_at().
  /// Of an answer: the calls that its sender has made in this scope, plus 1; 0: not known.
  std::uint64_t calls = 0;
  char ranks[40] = {};  ///< The members of a collective in which the sender waits.
  char activity[136] = {};
};

/// Why a wait cannot end. Its receiver throws the message.
struct Verdict {
  static constexpr std::size_t max_missing = 32;
  static constexpr std::uint64_t everything = ~std::uint64_t{0};  ///< A scope: its sender has left.
  std::uint64_t mark = wait_mark;
  std::uint64_t key = 0;
  std::uint64_t scope = 0;
  std::uint64_t attempt = 0;       ///< The sender's; see MonitorState::attempt_at().
  std::int64_t is_remembered = 0;  ///< Whether it also ends later waits at the point.
  std::int64_t is_timeout = 0;     ///< Whether the receiver throws a TimeoutError, not a PeerError.
  std::int64_t limit = 0;          ///< The TimeLimit that has passed.
  std::int64_t missing_count = 0;
  std::int64_t missing[max_missing] = {};
  char message[2048] = {};

  /// @param from         The member that sent it.
  /// @param own_attempt  The receiver's attempt at the point. An earlier one does not concern it.
  [[nodiscard]] bool concerns(const WaitPoint& point, int from, std::uint64_t own_attempt) const {
    if (scope == everything)
      return std::find(point.members.begin(), point.members.end(), from) != point.members.end();
    return (key == point.key && attempt >= own_attempt) || (scope != 0 && scope == point.scope);
  }
  [[nodiscard]] std::vector<Rank> missing_ranks() const {
    return {missing, missing + std::min<std::int64_t>(missing_count, max_missing)};
  }
  void set_missing(const std::vector<Rank>& ranks) {
    missing_count = static_cast<std::int64_t>(std::min(ranks.size(), max_missing));
    for (std::size_t i = 0; i < static_cast<std::size_t>(missing_count); ++i)
      missing[i] = ranks[i].value();
  }
};

inline Verdict verdict_of(const WaitPoint& point, const std::vector<Rank>& missing,
                          const std::string& message) {
  Verdict verdict;
  verdict.key = point.key;
  verdict.scope = point.scope;
  verdict.is_remembered = point.may_repeat ? 0 : 1;
  verdict.set_missing(missing);
  verdict.limit = static_cast<std::int64_t>(point.limit);
  copy_text(verdict.message, message);
  return verdict;
}

/// Receives a message of a monitor if one has arrived. On a communicator that the program also
/// uses, messages with the same tag and size may belong to the program, or to an earlier opening.
/// They are dropped.
/// @param mark  That of the monitor.
template <class Message>
std::optional<Received<Message>> receive(const mpi::CommunicatorView& comm, int tag,
                                         std::uint64_t mark) {
  auto received = receive_if_arrived<Message>(comm, tag);
  while (received && received->message.mark != mark)
    received = receive_if_arrived<Message>(comm, tag);
  return received;
}

}  // namespace rankmesh::detail
