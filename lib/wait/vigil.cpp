// SPDX-License-Identifier: BSD-3-Clause
#include "detail/vigil.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/detail/patience.hpp"
#include "detail/control_plane.hpp"
#include "detail/open_monitors.hpp"

namespace rankmesh::detail {
namespace {

constexpr const char* deadlock_hint =
    "make the calls of groups, and of meshes, that share ranks in the same order on all of them";
constexpr const char* ended_hint = "check why that rank ended";
constexpr std::size_t checks_at_once = 16;

double stall_lead(double stall) { return std::min(patience().before_stall.count(), stall / 2); }

// In nanoseconds.
std::int64_t check_interval() { return static_cast<std::int64_t>(patience().check.count() * 1e9); }

}  // namespace

// On a communicator that the program also uses, a message may belong to the program. On such a
// communicator, nothing is received until the wait has lasted so long that something is probably
// wrong.
Vigil::Vigil(MonitorState& state, const WaitPoint& point, const Deadline& deadline)
    : state_{state},
      point_{point},
      deadline_{deadline},
      silence_{Seconds{state.audience == WaitMonitor::Audience::own
                           ? 0.0
                           : std::min(5.0, deadline.seconds() / 2)}} {}

void Vigil::look() {
  if (begin_ == 0) begin();
  if (silence_.passed()) {
    state_.answer(point_);
    hear();
    receive_answers();
  }
  OpenMonitors::instance().answer(state_, point_);
  look_for_failures();
  look_for_deadlock();
  look_for_stall();
  look_at_deadline();
}

void Vigil::begin() {
  begin_ = NodeBoard::now();
  next_check_ = next_deadlock_check_ = begin_ + check_interval();
  if (state_.control == nullptr) return;
  next_stall_ = state_.control->stall.count();
  const NodeBoard* const board = state_.board();
  published_ = PublishedWait{board, notice()};
  if (board == nullptr) return;
  for (const int member : point_.members)
    if (member != state_.comm.rank() && board->index_of(state_.in_mesh(member)))
      local_.push_back(member);
}

WaitNotice Vigil::notice() const {
  WaitNotice notice{point_.key, point_.activity};
  if (point_.is_call) return notice;
  std::vector<Rank> ranks;
  for (const int member : point_.members) ranks.push_back(state_.in_mesh(member));
  notice.ranks = RankSet::of(ranks);
  return notice;
}

// Asks all members that are not on the board of this node.
void Vigil::ask(Seconds grace) {
  std::vector<RankAndActivity> before;  // members that do not answer again may still do this
  if (inquiry_) before = std::move(inquiry_->answers);
  inquiry_ = Inquiry{++state_.questions, Deadline{grace}, {}, std::move(before)};
  for (const int member : point_.members)
    if (member != state_.comm.rank() && std::ranges::find(local_, member) == local_.end())
      inquiry_->silent.push_back(member);
  for (const int member : inquiry_->silent)
    state_.send(member, question_tag, note_of(point_, inquiry_->number));
}

void Vigil::receive_answers() {
  while (const auto received = state_.take<Note>(answer_tag)) {
    const Note& answer = received->message;
    if (!inquiry_ || answer.number != inquiry_->number ||
        std::erase(inquiry_->silent, received->from) == 0)
      continue;  // to an earlier question
    const Rank from{received->from};
    std::erase_if(inquiry_->answers, [&](const auto& known) { return known.rank == from; });
    inquiry_->answers.push_back(
        {from,
         {.kind = RankActivity::Kind::waits,
          .key = answer.key,
          .text =
              std::string{answer.activity, ::strnlen(answer.activity, sizeof answer.activity)}}});
  }
}

// A member that has left never reaches the wait point. It may have done its part before it left, so
// the condition of the wait is polled for another moment.
void Vigil::hear() {
  const Verdict* departure = state_.hear(point_);
  if (departure == nullptr) return;
  if (!departure_end_) departure_end_ = Deadline{patience().part_of_leaver};
  if (departure_end_->passed()) state_.throw_verdict(point_, *departure);
}

bool Vigil::is_answered() const { return inquiry_->silent.empty() || inquiry_->grace.passed(); }

RankActivity Vigil::activity_of(int member) const {
  if (auto activity = state_.look(member)) return *activity;
  if (inquiry_) {
    const auto& answers = inquiry_->answers;
    const auto answer = std::ranges::find(answers, Rank{member}, &RankAndActivity::rank);
    if (answer != answers.end()) return answer->activity;
  }
  return {};
}

bool Vigil::is_present(const RankActivity& activity) const {
  return activity.kind == RankActivity::Kind::waits && activity.key == point_.key;
}

// When it is certain how the wait ends, other members are about to leave their waits too. The
// finding contains what they did before.
void Vigil::note_activities() {
  for (const int member : point_.members)
    if (member != state_.comm.rank()) noted_.push_back({Rank{member}, activity_of(member)});
}

// Reads the records as long as no rank has left its wait because of the error.
void Vigil::diagnose(NodeDiagnosis::Known known) {
  if (state_.board() == nullptr || !diagnosis_.empty()) return;
  diagnosis_ = state_.control->diagnosis()->read(*state_.board(), known);
}

// Returns the members that are not at the wait point, and what they do.
std::vector<RankAndActivity> Vigil::absent(std::vector<int>* present) const {
  std::vector<RankAndActivity> ranks;
  for (const int member : point_.members) {
    if (member == state_.comm.rank()) continue;
    RankActivity activity = activity_of(member);
    const auto noted = std::ranges::find(noted_, Rank{member}, &RankAndActivity::rank);
    // Without an answer to the second question, the first one counts.
    const bool is_noted =
        noted != noted_.end() && noted->activity.kind != RankActivity::Kind::silent;
    if (!is_present(activity) && is_noted) activity = noted->activity;
    if (!is_present(activity))
      ranks.push_back({Rank{member}, std::move(activity)});
    else if (present != nullptr)
      present->push_back(member);
  }
  return ranks;
}

// A member of this node that has failed never reaches the wait point. It may have done its part
// before it failed, so the condition of the wait is polled for another moment.
void Vigil::look_for_failures() {
  if (local_.empty() || NodeBoard::now() < next_check_) return;
  next_check_ = NodeBoard::now() + check_interval();
  const auto has_failed = [&](int member) {
    return state_.board()->has_failed(state_.in_mesh(member));
  };
  if (failed_ && has_failed(*failed_)) fail(false);
  if (failed_) return;
  for (std::size_t i = 0; i < std::min(local_.size(), checks_at_once) && !failed_; ++i) {
    next_local_ = (next_local_ + 1) % local_.size();
    if (has_failed(local_[next_local_])) failed_ = local_[next_local_];
  }
  if (!failed_) return;
  note_activities();
  diagnose(NodeDiagnosis::Known::missing);
}

// Members that wait in another call of the same group are not part of a circle. They learn the
// reason from the ranks that throw here.
void Vigil::look_for_deadlock() {
  if (!point_.needed || local_.empty() || NodeBoard::now() < next_deadlock_check_) return;
  if (deadlock_) throw_deadlock();
  next_deadlock_check_ = NodeBoard::now() + check_interval();
  if (!deadlock_watch_) deadlock_watch_.emplace(*state_.board());
  std::vector<Rank> needed;
  for (const int member : point_.needed()) needed.push_back(state_.in_mesh(member));
  deadlock_ = deadlock_watch_->look(needed, state_.names.of_mesh());
  if (!deadlock_) return;
  next_deadlock_check_ = deadlock_->at;
  diagnose(NodeDiagnosis::Known::circle);
}

void Vigil::throw_deadlock() {
  if (!deadlock_) return;
  const std::string why =
      fmt::format("rank {} gave up {}: {}", state_.names(Rank{state_.comm.rank()}), point_.activity,
                  deadlock_->text);
  std::vector<int> present;
  (void)absent(&present);
  state_.tell(point_, why, verdict_of(point_, {}, why), present);
  throw MismatchError{deadlock_->text, deadlock_hint + diagnosis_, false};
}

// Says what the members do. The two ends of a message, or the members of a ring, may wait in calls
// that do not match.
std::string Vigil::what_members_do(const std::vector<RankAndActivity>& absent) const {
  if (!absent.empty()) return describe(absent, state_.names);
  std::vector<RankAndActivity> all;
  bool is_same = true;
  for (const int member : point_.members) {
    if (member == state_.comm.rank()) continue;
    RankActivity activity = activity_of(member);
    const auto noted = std::ranges::find(noted_, Rank{member}, &RankAndActivity::rank);
    if (noted != noted_.end()) activity = noted->activity;
    is_same = is_same && activity.text == point_.activity;
    all.push_back({Rank{member}, std::move(activity)});
  }
  const bool is_known = std::ranges::all_of(
      all, [](const auto& of_rank) { return of_rank.activity.kind == RankActivity::Kind::waits; });
  return is_same || !is_known ? "all of its ranks wait in it" : describe(all, state_.names);
}

std::string Vigil::others_on_node() const {
  const NodeBoard* const board = state_.board();
  if (board == nullptr) return {};
  std::vector<RankAndActivity> others;
  for (const Rank rank : board->ranks()) {
    const bool is_member = std::ranges::any_of(
        point_.members, [&](int member) { return state_.in_mesh(member) == rank; });
    if (is_member || rank == board->self()) continue;
    if (auto activity = board->look(rank)) others.push_back({rank, std::move(*activity)});
  }
  if (others.empty()) return {};
  return "; others on this node: " + describe(others, state_.names.of_mesh());
}

void Vigil::look_for_stall() {
  if (next_stall_ <= 0 || !state_.control->log()->is_heard()) return;
  const double seconds = static_cast<double>(NodeBoard::now() - begin_) * 1e-9;
  // Members are asked before the report is due, so that it appears in time. On a communicator of
  // the program, a member may continue for long before it receives a question.
  if (seconds < next_stall_ - stall_lead(next_stall_)) return;
  if (!stall_inquiry_) {
    const bool may_ask = state_.audience == WaitMonitor::Audience::own;
    if (stage_ == Stage::early && may_ask) ask(Seconds{stall_lead(next_stall_)});
    stall_inquiry_ = Deadline{Seconds{stall_lead(next_stall_)}};
  }
  // The inquiry before the deadline may have replaced this one.
  if (seconds < next_stall_ || (inquiry_ && !is_answered() && !stall_inquiry_->passed())) return;
  stall_inquiry_.reset();
  const double interval = next_stall_;
  next_stall_ *= 2;
  const Log& log = *state_.control->log();
  // One report lists all ranks of the node.
  const auto since = begin_ + static_cast<std::int64_t>(interval * 0.5e9);
  if (log.has_default_reports() && state_.board() != nullptr &&
      !state_.board()->claim_stall_report(since))
    return;
  std::vector<int> present;
  const std::vector<RankAndActivity> ranks = absent(&present);
  // Without a board, as before a mesh is open, the first rank that waits here reports for all.
  if (log.has_default_reports() && state_.board() == nullptr &&
      std::ranges::any_of(present, [&](int member) { return member < state_.comm.rank(); }))
    return;
  log.report(fmt::format("rank {} has waited for {:.0f} s in {}: {}{}",
                         state_.names(Rank{state_.comm.rank()}), seconds, point_.activity,
                         what_members_do(ranks), others_on_node()));
}

// Asks the other members twice. The first time is a moment before the deadline, so that they can
// answer in time. The second time is at the deadline, to find out what they do then.
void Vigil::look_at_deadline() {
  const double left = deadline_.left().count();
  if (stage_ == Stage::early &&
      left <= std::min(patience().before_deadline.count(), deadline_.seconds() / 2)) {
    ask(Seconds{left});
    stage_ = Stage::asked;
  }
  if (left > 0) return;
  if (stage_ == Stage::asked) {
    hear();  // there may already be a verdict
    note_activities();
    ask(patience().answer);
    first_end_ = Deadline{patience().verdict};
    diagnose(NodeDiagnosis::Known::missing);
    stage_ = Stage::asked_again;
  }
  // Another member may be about to send its verdict, which all of them then throw.
  if (is_answered() && first_end_->passed()) fail(true);
}

void Vigil::fail(bool has_timed_out) {
  throw_deadlock();
  std::vector<int> present;
  const std::vector<RankAndActivity> ranks = absent(&present);
  std::vector<Rank> missing;
  for (const auto& [rank, activity] : ranks)
    if (activity.kind != RankActivity::Kind::waits)
      missing.push_back(state_.in_mesh(static_cast<int>(rank.value())));
  const std::string what = what_members_do(ranks);
  const Rank self = state_.in_mesh(state_.comm.rank());
  const std::string finding =
      has_timed_out ? fmt::format("{} did not end within {} s; {} (found by rank {})",
                                  point_.activity, deadline_.seconds(), what, self.value())
                    : fmt::format("{} cannot end; {} (found by rank {})", point_.activity, what,
                                  self.value());
  const double seconds = static_cast<double>(NodeBoard::now() - begin_) * 1e-9;
  const std::string why =
      fmt::format("rank {} gave up {}, after {:.1f} s: {}", state_.names(Rank{state_.comm.rank()}),
                  point_.activity, seconds, what);
  Verdict verdict = verdict_of(point_, missing, finding);
  verdict.is_timeout = has_timed_out ? 1 : 0;
  state_.tell(point_, why, verdict, present);
  if (!has_timed_out) throw PeerError{finding, ended_hint + diagnosis_, std::move(missing)};
  throw TimeoutError{finding, timeout_hint(point_.limit) + diagnosis_, std::move(missing)};
}

}  // namespace rankmesh::detail
