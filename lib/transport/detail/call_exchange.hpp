// SPDX-License-Identifier: BSD-3-Clause
// The comparison of calls by messages of MPI.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/transport/call.hpp"
#include "transport/detail/call_variants.hpp"

namespace rankmesh::detail {

/// Compares the collective calls of a group that has no shared memory. Before each call, the
/// members exchange their descriptors by a non-blocking all-gather on the group's communicator, and
/// the counts of a v-form by a second one.
///
/// MPI needs the same order of collectives on all members. Therefore the exchange of a call begins
/// only after MPI's operation of the call before it has been started.
///
/// There is no helper thread: exchanges make progress in advance(). Used by one thread at a time.
class CallExchange {
 public:
  /// A call that is compared.
  class Comparison;

  /// @param comm  The communicator of the group. It must outlive this object.
  CallExchange(mpi::CommunicatorView comm, GroupMembers members);
  ~CallExchange();
  CallExchange(const CallExchange&) = delete;
  CallExchange& operator=(const CallExchange&) = delete;

  /// Adds a call. Local; the call may be destroyed afterwards.
  /// @param is_async  Whether this member uses the form with _async.
  /// @param carry     Starts the operation that carries the call; runs as soon as the calls of all
  ///                  members are equal. Its argument says whether any member uses the form with
  ///                  _async. MPI does not match a blocking collective with a non-blocking one, so
  ///                  all members must know this.
  std::shared_ptr<Comparison> begin(const Call& call, bool is_async,
                                    std::function<void(bool any_is_async)> carry);
  /// Continues the exchanges as far as the other members allow. Never waits and never throws.
  void advance();
  /// Makes progress, and returns whether the call was compared and its operation was started.
  /// @throws MismatchError if the members make different calls; and what `carry` throws.
  bool test(const Comparison& comparison);
  /// Returns what test() has returned or would return, without making progress. Never throws.
  [[nodiscard]] static bool is_complete(const Comparison& comparison);

  /// Returns the number of calls so far.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  /// See Transport::leave(), have_all_left(), stay() and compare_at_close().
  void leave(std::string_view why);
  bool have_all_left();
  void stay();
  void compare_at_close();
  /// See Transport::throw_if_ended().
  void throw_if_ended();
  /// Ends all comparisons: this member has failed and knows why.
  void end(std::exception_ptr why) {
    has_thrown_ = true;
    if (failure_ == nullptr) failure_ = std::move(why);
  }

 private:
  struct Note;
  // What is known of a member that makes no further calls.
  struct Departure {
    std::uint64_t closed_after = 0;  // 1 + the number of its calls; 0 while the group is open
    std::string why;
  };
  enum class NoteKind : std::uint64_t;
  [[nodiscard]] Note note_of(NoteKind kind, std::string_view text,
                             std::uint64_t closed_after = 0) const;
  void tell_all(const Note& note) const;
  void receive_notes();
  void look_for_departed();
  void end_departed_call(std::vector<std::string> calls, std::string own_call);
  bool step(Comparison& comparison);
  void compare(const Comparison& comparison) const;
  void compare_counts(const Comparison& comparison) const;
  [[noreturn]] void refuse(const Comparison& comparison) const;
  [[nodiscard]] std::string departure_text(const Departure& departure) const;

  mpi::CommunicatorView comm_;
  GroupMembers members_;
  std::uint64_t calls_ = 0;
  std::deque<std::shared_ptr<Comparison>> queue_;
  std::vector<Departure> departures_;  // one per member
  // Of the members that are in a call which a departed member has not made: the call in words.
  std::vector<std::string> reports_;
  std::optional<Deadline> reports_end_;  // how long this member waits for the reports
  std::exception_ptr failure_;           // why the group has ended early
  std::uint64_t failed_attempts_ = 0;    // to close the group
  bool has_thrown_ = false;              // on this rank
  int polls_ = 0;
};

}  // namespace rankmesh::detail
