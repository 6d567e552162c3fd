// SPDX-License-Identifier: BSD-3-Clause
#include "detail/long_wait.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/detail/launched.hpp"
#include "base/detail/patience.hpp"
#include "detail/control_plane.hpp"
#include "detail/open_parts.hpp"
#include "mpi/detail/translated_ranks.hpp"

namespace rankmesh::detail {
namespace {

constexpr const char* deadlock_hint =
    "make the calls of groups, and of meshes, that share ranks in the same order on all of them";
constexpr const char* ended_hint = "check why that rank ended, or has left the mesh";
constexpr std::size_t checks_at_once = 16;
// Open MPI compares every member with every rank of the other mesh. Larger meshes do without.
constexpr std::int64_t most_comparisons = 1'000'000;

RankStatus status_in(const std::map<int, RankStatus>& ranks, int member) {
  const auto found = ranks.find(member);
  return found == ranks.end() ? RankStatus{} : found->second;
}

double stall_lead(double stall) { return std::min(patience().before_stall.count(), stall / 2); }

// Returns the wait for the members of another mesh. No wait of these members has its key.
WaitPoint seen_from_another_mesh(const WaitPoint& point) {
  std::string activity =
      point.activity.substr(0, sizeof Note::activity - 1 - record::in_another_mesh.size());
  return {.key = 0, .activity = activity.append(record::in_another_mesh)};
}

}  // namespace

// On a communicator that the program also uses, a message may belong to the program. On such a
// communicator, nothing is received until the wait has lasted so long that something is probably
// wrong.
LongWait::LongWait(MonitorState& state, const WaitPoint& point, const Deadline& deadline)
    : state_{state},
      point_{point},
      deadline_{deadline},
      silence_{Seconds{state.audience == WaitMonitor::Audience::own
                           ? 0.0
                           : std::min(5.0, deadline.seconds() / 2)}} {}

void LongWait::look() {
  try {
    take_steps();
  } catch (const LostRanks&) {
    throw;
  } catch (const Error& error) {
    if (state_.control != nullptr) state_.control->throw_if_result_of_loss(error);
    if (may_give_up()) throw;
  }
}

void LongWait::take_steps() {
  LossWatch::look_at_all(waiting_, state_.comm, [this] { return awaited(); });
  if (state_.control != nullptr) state_.control->throw_if_lost();
  if (begin_ == 0) begin();
  if (state_.control != nullptr && state_.control->at_look) state_.control->at_look();
  if (silence_.passed()) {
    state_.answer(point_);
    hear();
    receive_answers();
  }
  // While the rank is in this wait, it cannot begin the waits of other monitors.
  OpenParts<MonitorState>::instance().for_each([&](MonitorState& other) {
    if (&other != &state_) other.answer(seen_from_another_mesh(point_));
  });
  look_for_failures();
  look_for_deadlock();
  look_for_stall();
  look_at_deadline();
}

// If it is not known who has not done its part yet, these are all members.
std::vector<int> LongWait::awaited() const {
  const std::vector<int> needed = point_.needed ? point_.needed() : std::vector<int>{};
  return needed.empty() ? point_.members : needed;
}

void LongWait::begin() {
  begin_ = NodeBoard::now();
  next_check_ = next_deadlock_check_ = begin_ + nanoseconds(patience().check);
  if (state_.control == nullptr) return;
  next_stall_ = state_.control->stall.count();
  published_.emplace(state_.board(), wait_of_point(), ranks_elsewhere());
  if (state_.board() == nullptr) return;
  for (const int member : point_.members)
    if (member != state_.comm.rank() && state_.board()->index_of(state_.in_mesh(member)))
      local_.push_back(member);
}

record::Wait LongWait::wait_of_point() const {
  record::Wait wait{.text = point_.activity, .point = point_.key};
  if (!point_.is_call) wait.ranks = RankSet::of(state_.in_mesh(point_.members));
  return wait;
}

// The members of this wait in the other meshes of this process. A mesh that is being opened has no
// record yet, so only those of other meshes can say for whom this rank waits.
PublishedWait::RanksElsewhere LongWait::ranks_elsewhere() const {
  PublishedWait::RanksElsewhere elsewhere;
  OpenParts<MonitorState>::instance().for_each([&](const MonitorState& other) {
    if (&other == &state_ || other.board() == nullptr) return;
    if (std::ssize(point_.members) * other.comm.size() > most_comparisons) return;
    std::vector<Rank> ranks;
    for (const int member : mpi::translated_ranks(state_.comm, point_.members, other.comm))
      if (member != MPI_UNDEFINED) ranks.push_back(other.in_mesh(member));
    std::ranges::sort(ranks);
    elsewhere[other.board()] = RankSet::of(ranks);
  });
  return elsewhere;
}

// Asks all members. Those on the board of this node are not waited for, because it shows what they
// do.
void LongWait::ask(Seconds grace) {
  std::map<int, RankStatus> before;  // members that do not answer again may still do this
  if (inquiry_) before = std::move(inquiry_->answers);
  launched_.clear();
  inquiry_ = Inquiry{++state_.questions, Deadline{grace}, {}, std::move(before)};
  for (const int member : point_.members) {
    if (member == state_.comm.rank()) continue;
    if (std::ranges::find(local_, member) == local_.end()) inquiry_->silent.insert(member);
    state_.send(member, question_tag, state_.note_of(point_, inquiry_->number));
  }
}

void LongWait::receive_answers() {
  while (const auto received = state_.take<Note>(answer_tag)) {
    const Note& answer = received->message;
    if (!inquiry_ || answer.number != inquiry_->number) continue;  // to an earlier question
    inquiry_->silent.erase(received->from);
    RankStatus status{.kind = RankStatus::Kind::waits,
                      .key = answer.key,
                      .text = {answer.activity, ::strnlen(answer.activity, sizeof answer.activity)},
                      .ranks = {answer.ranks, ::strnlen(answer.ranks, sizeof answer.ranks)}};
    if (answer.calls > 0) status.calls = answer.calls - 1;
    inquiry_->answers.insert_or_assign(received->from, std::move(status));
  }
}

// A member that has left never reaches the wait point. It may have done its part before it left, so
// the condition of the wait is polled for another moment.
void LongWait::hear() {
  const Verdict* departure = state_.hear(point_);
  if (departure == nullptr) return;
  if (!departure_end_) departure_end_ = Deadline{patience().part_of_leaver};
  if (departure_end_->passed()) state_.throw_verdict(point_, *departure);
}

bool LongWait::is_answered() const { return inquiry_->silent.empty() || inquiry_->grace.passed(); }

// While the first mesh is opened, the ranks share no memory yet. Then only the system can say that
// a silent rank is stopped or has ended.
RankStatus LongWait::status_of(int member) const {
  RankStatus status = inquiry_ ? status_in(inquiry_->answers, member) : RankStatus{};
  if (const auto seen = state_.look(member)) {
    const bool is_same = seen->kind == status.kind && seen->key == status.key;
    return is_same ? status : *seen;
  }
  if (status.kind != RankStatus::Kind::silent || state_.board() != nullptr) return status;
  const mpi::CommunicatorView world{MPI_COMM_WORLD};
  const int number = mpi::translated_ranks(state_.comm, {&member, 1}, world).front();
  if (launched_.empty()) launched_ = states_of_launched();
  const auto process = launched_.find(number);
  if (process == launched_.end()) return status;
  if (process->second == ProcessState::stopped) status.kind = RankStatus::Kind::stopped;
  if (process->second == ProcessState::ended) status.kind = RankStatus::Kind::ended;
  return status;
}

bool LongWait::is_present(const RankStatus& status) const {
  return status.kind == RankStatus::Kind::waits && status.key == point_.key;
}

// When it is certain how the wait ends, other members are about to leave their waits too. The
// finding contains what they did before.
void LongWait::note_status() {
  for (const int member : point_.members)
    if (member != state_.comm.rank()) noted_.try_emplace(member, status_of(member));
}

// Reads the records as long as no rank has left its wait because of the error. Only the first error
// of a rank has a diagnosis, because later errors result from the first one. Process ids of other
// process namespaces mean nothing here.
void LongWait::diagnose(AlreadySaid said) {
  const NodeBoard* const board = state_.board();
  if (board == nullptr || board->recorder() == nullptr || !board->claim_diagnosis()) return;
  std::vector<std::int64_t> processes;
  for (std::size_t slot = 0; slot < board->ranks().size(); ++slot) {
    const ProcessIdentity process = board->area(slot).identity();
    if (process.process != 0 && process.pid_namespace == board->own().process.pid_namespace)
      processes.push_back(process.process);
  }
  diagnosis_ = diagnose_node(*board->recorder(), processes, said);
}

// If all members wait here, their calls may still differ: the two ends of a message, or the members
// of a ring, may wait in calls that do not match.
LongWait::Members LongWait::members() const {
  Members members;
  std::vector<StatusOfRank> all;
  bool is_same = true;
  for (const int member : point_.members) {
    if (member == state_.comm.rank()) continue;
    RankStatus status = status_of(member);
    RankStatus noted = status_in(noted_, member);
    const bool is_here = is_present(status) || is_present(noted);
    // Without an answer to the second question, the first one counts.
    if (noted.kind != RankStatus::Kind::silent) status = std::move(noted);
    if (is_here) members.present.push_back(member);
    if (!is_here) members.absent.push_back({Rank{member}, status});
    is_same = is_same && status.text == point_.activity;
    all.push_back({Rank{member}, std::move(status)});
  }
  const bool all_wait = std::ranges::all_of(
      all, [](const auto& of_rank) { return of_rank.status.kind == RankStatus::Kind::waits; });
  if (!members.absent.empty())
    members.text = describe(members.absent, state_.names);
  else
    members.text =
        is_same || !all_wait ? "all of its ranks wait in it" : describe(all, state_.names);
  return members;
}

// A member that has left its mesh without an exception may have done its part before: then the wait
// does not need it. Members of a mesh that has lost ranks leave it for the next one.
bool LongWait::has_failed(int member) const {
  const NodeBoard& board = *state_.board();
  if (board.has_failed(state_.in_mesh(member))) return true;
  if (!point_.needed || state_.control->losses != nullptr) return false;
  if (!board.has_destroyed(state_.in_mesh(member))) return false;
  const std::vector<int> needed = point_.needed();
  return std::ranges::find(needed, member) != needed.end();
}

// A member of this node that has failed never reaches the wait point. It may have done its part
// before it failed, so the condition of the wait is polled for another moment.
void LongWait::look_for_failures() {
  if (local_.empty() || NodeBoard::now() < next_check_) return;
  next_check_ = NodeBoard::now() + nanoseconds(patience().check);
  if (failed_ && !has_failed(*failed_)) {
    failed_.reset();
    noted_.clear();
  }
  if (failed_) return fail(false);
  for (std::size_t i = 0; i < std::min(local_.size(), checks_at_once) && !failed_; ++i) {
    next_local_ = (next_local_ + 1) % local_.size();
    if (has_failed(local_[next_local_])) failed_ = local_[next_local_];
  }
  if (!failed_) return;
  note_status();
  diagnose(AlreadySaid::missing);
}

// Members that wait in another call of the same group are not part of a circle. They learn the
// reason from the ranks that throw here.
void LongWait::look_for_deadlock() {
  if (!point_.needed || local_.empty() || NodeBoard::now() < next_deadlock_check_) return;
  if (deadlock_ && may_give_up()) throw_deadlock();
  next_deadlock_check_ = NodeBoard::now() + nanoseconds(patience().check);
  if (!deadlock_watch_) deadlock_watch_.emplace(*state_.board());
  published_->need(state_.in_mesh(point_.needed()));
  deadlock_ = deadlock_watch_->look(state_.names.of_mesh());
  if (!deadlock_) return;
  next_deadlock_check_ = deadlock_->at;
  diagnose(AlreadySaid::circle);
}

void LongWait::throw_deadlock() {
  if (!deadlock_) return;
  const std::string why = state_.gave_up(point_, deadlock_->text);
  state_.tell(point_, why, verdict_of(point_, {}, why), members().present);
  throw MismatchError{deadlock_->text, deadlock_hint + diagnosis_, false};
}

void LongWait::look_for_stall() {
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
  // One report lists all ranks of the node. The previous one of this wait came after half of this
  // interval.
  const auto since = begin_ + static_cast<std::int64_t>(interval * 0.75e9);
  if (log.has_default_reports() && state_.board() != nullptr &&
      !state_.board()->claim_stall_report(since))
    return;
  const Members others = members();
  // Without a board, as before a mesh is open, the first rank that waits here reports for all.
  if (log.has_default_reports() && state_.board() == nullptr &&
      std::ranges::any_of(others.present, [&](int member) { return member < state_.comm.rank(); }))
    return;
  const std::string rest =
      state_.board() == nullptr
          ? ""
          : others_on_node(*state_.board(), state_.names.of_mesh(), state_.in_mesh(point_.members));
  log.report(fmt::format("rank {} has waited for {:.0f} s in {}: {}{}",
                         state_.names(Rank{state_.comm.rank()}), seconds, point_.activity,
                         others.text, rest));
}

// Asks the other members twice. The first time is a moment before the deadline, so that they can
// answer in time. The second time is at the deadline, to find out what they do then.
void LongWait::look_at_deadline() {
  const double left = deadline_.left().count();
  if (stage_ == Stage::early &&
      left <= std::min(patience().before_deadline.count(), deadline_.seconds() / 2)) {
    ask(Seconds{left});
    stage_ = Stage::asked;
  }
  if (left > 0) return;
  if (stage_ == Stage::asked) {
    note_status();
    // A member that has given up has told this rank before it left its wait. So if it was noted as
    // missing, its verdict is there.
    hear();
    ask(patience().answer);
    first_end_ = Deadline{patience().verdict};
    diagnose(AlreadySaid::missing);
    stage_ = Stage::asked_again;
    return;  // the condition is polled once more, because the diagnosis takes time
  }
  if (!is_answered() || !first_end_->passed()) return;
  // Another member may have sent its verdict, which all of them then throw, while this rank read
  // the records or had no core. MPI may show a message only after it has looked for others.
  constexpr int looks = 3;
  for (int i = 0; i < looks; ++i) hear();
  fail(true);
}

// The others are told only after it is certain that this rank gives up.
void LongWait::fail(bool has_timed_out) {
  if (!may_give_up()) return;
  throw_deadlock();
  const Members others = members();
  std::vector<int> elsewhere;
  for (const auto& [rank, status] : others.absent)
    if (status.kind != RankStatus::Kind::waits) elsewhere.push_back(rank.to_int());
  std::vector<Rank> missing = state_.in_mesh(elsewhere);
  const Rank self = state_.in_mesh(state_.comm.rank());
  const std::string finding =
      has_timed_out ? fmt::format("{} did not end within {} s; {} (found by rank {})",
                                  point_.activity, deadline_.seconds(), others.text, self.value())
                    : fmt::format("{} cannot end; {} (found by rank {})", point_.activity,
                                  others.text, self.value());
  const double seconds = static_cast<double>(NodeBoard::now() - begin_) * 1e-9;
  const std::string why =
      fmt::format("rank {} gave up {}, after {:.1f} s: {}", state_.names(Rank{state_.comm.rank()}),
                  point_.activity, seconds, others.text);
  Verdict verdict = verdict_of(point_, missing, finding);
  verdict.is_timeout = has_timed_out ? 1 : 0;
  state_.tell(point_, why, verdict, others.present);
  if (!has_timed_out) throw PeerError{finding, ended_hint + diagnosis_, std::move(missing)};
  throw TimeoutError{finding, timeout_hint(point_.limit, !missing.empty()) + diagnosis_,
                     std::move(missing)};
}

}  // namespace rankmesh::detail
