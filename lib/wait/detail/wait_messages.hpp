// SPDX-License-Identifier: BSD-3-Clause
// The messages that wait monitors exchange.
#pragma once

#include <algorithm>
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
inline const char* timeout_hint(TimeLimit limit) {
  switch (limit) {
    case TimeLimit::timeout:
      break;
    case TimeLimit::deadline:
      return "check the missing ranks for a crash, another branch or an earlier error; "
             "RANKMESH_DEADLINE or MeshOptions::deadline sets the time limit";
    case TimeLimit::argument:
      return "check the missing ranks for a crash, another branch or an earlier error; the "
             "argument "
             "of the call that waits sets the time limit";
  }
  return "check the missing ranks for a crash, another branch or an earlier error; "
         "RANKMESH_TIMEOUT "
         "or MeshOptions::timeout sets the time limit";
}
/// Returns the limit that the hint of a TimeoutError names.
inline TimeLimit limit_of(const std::string& hint) {
  for (const TimeLimit limit : {TimeLimit::deadline, TimeLimit::argument})
    if (hint.starts_with(timeout_hint(limit))) return limit;  // a diagnosis may follow
  return TimeLimit::timeout;
}
inline constexpr std::uint64_t wait_mark = 0x72616e6b6d657368;  // "rankmesh"

/// A question or an answer: where its sender waits.
struct Note {
  std::uint64_t mark = wait_mark;
  std::uint64_t key = 0;
  std::uint64_t number = 0;  ///< Of the question; an answer repeats it.
  char activity[136] = {};
};

/// Why a wait cannot end. Its receiver throws the message.
struct Verdict {
  static constexpr std::size_t max_missing = 32;
  static constexpr std::uint64_t everything = ~std::uint64_t{0};  ///< A scope: its sender has left.
  std::uint64_t mark = wait_mark;
  std::uint64_t key = 0;
  std::uint64_t scope = 0;
  std::int64_t is_remembered = 0;  ///< Whether it also ends later waits at the point.
  std::int64_t is_timeout = 0;     ///< Whether the receiver throws a TimeoutError, not a PeerError.
  std::int64_t limit = 0;          ///< The TimeLimit that has passed.
  std::int64_t missing_count = 0;
  std::int64_t missing[max_missing] = {};
  char message[2048] = {};

  /// @param from  The member that sent it.
  [[nodiscard]] bool concerns(const WaitPoint& point, int from) const {
    if (scope == everything)
      return std::find(point.members.begin(), point.members.end(), from) != point.members.end();
    return key == point.key || (scope != 0 && scope == point.scope);
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

inline Note note_of(const WaitPoint& point, std::uint64_t number) {
  Note note;
  note.key = point.key;
  note.number = number;
  copy_text(note.activity, point.activity);
  return note;
}

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
/// uses, a message with the same tag and size may belong to the program.
template <class Message>
std::optional<Received<Message>> receive(const mpi::CommunicatorView& comm, int tag) {
  auto received = receive_if_arrived<Message>(comm, tag);
  if (received && received->message.mark != wait_mark) return std::nullopt;
  return received;
}

}  // namespace rankmesh::detail
