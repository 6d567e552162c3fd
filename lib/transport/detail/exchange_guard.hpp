// SPDX-License-Identifier: BSD-3-Clause
// The guard of collectives by messages of MPI.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "transport/detail/note_guard.hpp"

namespace rankmesh::detail {

/// Compares the collective calls of a group that has no shared memory. Before each call, the
/// members exchange their descriptors by a non-blocking all-gather on the group's communicator, and
/// the counts of a v-form by a second one.
///
/// MPI needs the same order of collectives on all members. Therefore the exchange of a call begins
/// only after MPI's operation of the call before it has been started.
///
/// There is no helper thread: exchanges make progress when one of them is tested.
class ExchangeGuard final : public NoteGuard {
 public:
  ExchangeGuard(const mpi::CommunicatorView& comm, GroupMembers members);
  ~ExchangeGuard() override;
  ExchangeGuard(const ExchangeGuard&) = delete;
  ExchangeGuard& operator=(const ExchangeGuard&) = delete;

  bool meet(const Call& call, bool is_async, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start_comparison(const Call& call, Carry carry) override;
  [[nodiscard]] std::unique_ptr<Pending> start_end(const Call& call, const bool& has_run) override;
  void leave(std::string_view why) override;
  bool have_all_left() override;
  void stay() override;
  void compare_at_close() override;

 private:
  struct ComparedCall;
  class PendingComparison;
  // What is known of a member that makes no further calls.
  struct Departure {
    std::uint64_t closed_after = 0;  // 1 + the number of its calls; 0 while the group is open
    std::string why;
  };
  std::shared_ptr<ComparedCall> begin(const Call& call, bool is_async, Carry carry,
                                      const bool* waits_for = nullptr);
  void advance();
  void take(int from, const GuardNote& note, std::string text) override;
  void look_for_departed();
  void end_departed_call(std::vector<std::string> calls, std::string own_call);
  bool step(ComparedCall& call);
  void compare(const ComparedCall& call) const;
  void compare_counts(const ComparedCall& call) const;
  [[noreturn]] void refuse_exchange(const ComparedCall& call) const;

  std::deque<std::shared_ptr<ComparedCall>> queue_;
  std::vector<Departure> departures_;  // one per member
  // Of the members that are in a call which a departed member has not made: the call in words.
  std::vector<std::string> reports_;
  std::optional<Deadline> reports_end_;  // how long this member waits for the reports
  int polls_ = 0;
};

}  // namespace rankmesh::detail
