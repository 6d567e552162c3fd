// SPDX-License-Identifier: BSD-3-Clause
// One wait of a wait monitor, from the moment that it leaves the fast path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/detail/process_stat.hpp"
#include "deadlock_watch.hpp"
#include "loss_watch.hpp"
#include "monitor_state.hpp"
#include "published_wait.hpp"
#include "rankmesh/base/deadline.hpp"
#include "record/detail/node_diagnosis.hpp"

namespace rankmesh::detail {

/// Watches over one wait: publishes it, answers and asks questions, reports a stall, and ends the
/// wait if a member has failed or the deadline has passed. look() never blocks, so the caller
/// polls its condition all the time.
class LongWait {
 public:
  LongWait(MonitorState& state, const WaitPoint& point, const Deadline& deadline);

  /// Performs the steps that are due. Call it regularly while the condition of the wait does not
  /// hold. It may hold afterwards; see WaitPoint::may_give_up.
  /// @throws TimeoutError if the wait cannot end, or did not end in time.
  void look();
  /// Throws the MismatchError of a deadlock, if one is known that has not been thrown yet.
  void throw_deadlock();

 private:
  using Seconds = Deadline::Duration;
  /// What other members have answered to one question.
  struct Inquiry {
    std::uint64_t number = 0;
    Deadline grace;
    std::set<int> silent;  ///< Members that have not answered.
    std::map<int, RankStatus> answers;
  };
  /// The other members.
  struct Members {
    std::vector<int> present;          ///< At the wait point.
    std::vector<StatusOfRank> absent;  ///< Elsewhere, and what they do.
    std::string text;                  ///< What the members do, in words.
  };

  void take_steps();
  [[nodiscard]] bool may_give_up() const { return !point_.may_give_up || point_.may_give_up(); }
  [[nodiscard]] std::vector<int> awaited() const;
  void begin();
  [[nodiscard]] record::Wait wait_of_point() const;
  [[nodiscard]] PublishedWait::RanksElsewhere ranks_elsewhere() const;
  void ask(Seconds grace);
  void receive_answers();
  void hear();
  [[nodiscard]] bool is_answered() const;
  void look_for_failures();
  [[nodiscard]] bool has_failed(int member) const;
  void look_for_deadlock();
  void look_for_stall();
  void look_at_deadline();
  [[nodiscard]] RankStatus status_of(int member) const;
  [[nodiscard]] bool is_present(const RankStatus& status) const;
  void note_status();
  [[nodiscard]] Members members() const;
  void diagnose(AlreadySaid said);
  void fail(bool has_timed_out);

  MonitorState& state_;
  const WaitPoint& point_;
  const Deadline& deadline_;
  const Deadline silence_;  ///< Nothing is received before it has passed.
  LossWatch::Waiting waiting_;
  std::int64_t begin_ = 0;  ///< 0 before the first look.
  std::optional<PublishedWait> published_;
  std::optional<Inquiry> inquiry_;
  std::vector<int> local_;  ///< Members on this node.
  std::size_t next_local_ = 0;
  std::int64_t next_check_ = 0;            ///< For members that have failed.
  std::optional<int> failed_;              ///< A member that has failed, at the last check.
  std::optional<Deadline> departure_end_;  ///< A member on another node has left; see hear().
  std::optional<DeadlockWatch> deadlock_watch_;
  std::int64_t next_deadlock_check_ = 0;
  std::optional<Deadlock> deadlock_;
  double next_stall_ = 0;
  std::optional<Deadline> stall_inquiry_;  ///< While members are asked for a stall report.
  std::map<int, RankStatus> noted_;        ///< When the end of the wait was clear.
  mutable std::map<std::int64_t, ProcessState> launched_;  ///< See states_of_launched().
  std::string diagnosis_;                                  ///< See diagnose_node().
  std::optional<Deadline> first_end_;                      ///< The wait does not fail before it.
  enum class Stage : std::uint8_t { early, asked, asked_again } stage_ = Stage::early;
};

}  // namespace rankmesh::detail
