// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/wait_monitor.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/detail/copy_of_error.hpp"
#include "base/detail/error_in_flight.hpp"
#include "base/detail/patience.hpp"
#include "detail/control_plane.hpp"
#include "detail/long_wait.hpp"
#include "detail/open_parts.hpp"
#include "detail/progress.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
namespace {

constexpr const char* given_up_hint = "see the error of the rank that gave up";

// Keeps the latest verdicts.
void keep(auto& verdicts, const auto& verdict) {
  constexpr std::size_t most_verdicts = 64;
  verdicts.push_back(verdict);
  if (verdicts.size() > most_verdicts) verdicts.pop_front();
}

// Ranks may outnumber cores, and a wait may take minutes: yield soon, and sleep later. Where MPI
// may not copy directly, it carries a large message in small pieces, for which both sides must
// poll. So a wait sleeps only after 50 ms, in which MPI carries some hundred megabytes.
Backoff::Options pauses() {
  return {.spins = 49,
          .yields = std::chrono::duration_cast<Backoff::Duration>(detail::patience().yields)};
}

// A wait looks at the other members, and shows them that it waits, after so many polls. If many
// processes share a core, each poll lasts for milliseconds, because MPI yields too. Therefore the
// time counts as well: otherwise the other members might not see before their deadline that this
// rank waits.
constexpr int polls_per_look = 64;
constexpr Deadline::Duration longest_between_looks{0.01};

void tell_reason(detail::MonitorState& state, const WaitPoint& point, const std::string& reason,
                 const std::vector<Rank>& missing) {
  const auto is_same = [&](const detail::Verdict& verdict) { return verdict.key == point.key; };
  if (std::ranges::any_of(state.given_up, is_same)) return;
  const std::string why = state.gave_up(point, reason);
  state.tell(point, why, detail::verdict_of(point, missing, why), {});
}

}  // namespace

namespace detail {

NodeBoard* MonitorState::board() const {
  return control == nullptr ? nullptr : control->find_board();
}

std::vector<Rank> MonitorState::in_mesh(const std::vector<int>& members) const {
  std::vector<Rank> ranks;
  for (const int member : members) ranks.push_back(in_mesh(member));
  return ranks;
}

std::string MonitorState::gave_up(const WaitPoint& point, const std::string& reason) const {
  return fmt::format("rank {} gave up {}: {}", names(Rank{comm.rank()}), point.activity, reason);
}

std::optional<RankStatus> MonitorState::look(int member) const {
  const NodeBoard* const board = this->board();
  return board == nullptr ? std::nullopt : board->look(in_mesh(member));
}

Note MonitorState::note_of(const WaitPoint& point, std::uint64_t number) const {
  Note note{
      .key = point.key, .number = number, .scope = point.scope, .attempt = attempt_at(point.key)};
  if (point.is_call && point.scope != 0)
    copy_text(note.ranks, RankSet::of(in_mesh(point.members)).to_string(30));
  copy_text(note.activity, point.activity);
  return note;
}

void MonitorState::answer(const WaitPoint& point) {
  while (const auto question = take<Note>(question_tag)) {
    const std::uint64_t asked = question->message.key;
    const auto verdict = std::ranges::find(given_up, asked, &Verdict::key);
    if (asked != point.key && verdict != given_up.end() &&
        verdict->attempt >= question->message.attempt) {
      send(question->from, verdict_tag, for_late_member(question->from, *verdict));
      continue;
    }
    Note answer = note_of(point, question->message.number);
    if (control != nullptr && control->calls_of && question->message.scope != 0)
      if (const auto calls = control->calls_of(question->message.scope)) answer.calls = *calls + 1;
    send(question->from, answer_tag, answer);
  }
}

const Verdict* MonitorState::hear(const WaitPoint& point) {
  const auto is_mine = [&](const auto& known) {
    return known.message.concerns(point, known.from, attempt_at(point.key));
  };
  while (const auto received = take<Verdict>(verdict_tag))
    if (received->message.is_remembered != 0 || is_mine(*received)) keep(heard, *received);
  const Verdict* departure = nullptr;
  for (const auto& known : heard) {
    if (!is_mine(known)) continue;
    if (known.message.scope == Verdict::everything) {
      if (departure == nullptr) departure = &known.message;
      continue;
    }
    const Verdict verdict = known.message;
    // A scope does not recover. A point without a scope may be tried again.
    std::erase_if(heard, [&](const auto& k) { return k.message.scope == 0 && is_mine(k); });
    throw_verdict(point, verdict);
  }
  return departure;
}

void MonitorState::throw_verdict(const WaitPoint& point, const Verdict& verdict) {
  end_attempt(verdict, point.key);  // also for those who ask this rank
  if (verdict.is_timeout != 0)
    throw TimeoutError{
        verdict.message,
        timeout_hint(static_cast<TimeLimit>(verdict.limit), verdict.missing_count > 0),
        verdict.missing_ranks()};
  throw PeerError{verdict.message, given_up_hint, verdict.missing_ranks()};
}

void MonitorState::tell(const WaitPoint& point, const std::string& why, const Verdict& finding,
                        const std::vector<int>& present) {
  const Verdict verdict = verdict_of(point, finding.missing_ranks(), why);
  const auto send_of_attempt = [&](int member, Verdict told) {
    told.attempt = attempt_at(point.key);
    send(member, verdict_tag, told);
  };
  for (const int member : point.members) {
    if (member == comm.rank()) continue;
    const bool is_present = std::ranges::find(present, member) != present.end();
    // If the point may repeat, a rank that does not wait here might apply the message to its next
    // wait.
    if (is_present || !point.may_repeat)
      send_of_attempt(member, is_present ? finding : for_late_member(member, verdict));
  }
  end_attempt(verdict, point.key);
}

// A member that came too late was missing itself, but it wants to know whom to look for.
Verdict MonitorState::for_late_member(int member, Verdict verdict) const {
  std::vector<Rank> missing = verdict.missing_ranks();
  std::erase(missing, in_mesh(member));
  if (missing.empty()) missing.push_back(in_mesh(comm.rank()));
  verdict.set_missing(missing);
  return verdict;
}

void MonitorState::come_back(const WaitPoint& point) {
  std::erase_if(given_up, [&](const Verdict& verdict) { return verdict.key == point.key; });
}

void MonitorState::end_attempt(Verdict verdict, std::uint64_t key) {
  verdict.key = key;
  verdict.attempt = attempt_at(key);
  keep(given_up, verdict);
  ++failures[key];
}

std::uint64_t MonitorState::attempt_at(std::uint64_t key) const {
  const auto found = failures.find(key);
  return found == failures.end() ? 1 : found->second + 1;
}

}  // namespace detail

WaitMonitor::WaitMonitor(mpi::CommunicatorView comm, Audience audience, RankNames names,
                         const detail::ControlPlane* control, std::uint64_t number)
    : state_{std::make_unique<detail::MonitorState>(comm, audience, std::move(names), control,
                                                    detail::wait_mark + number)} {}
WaitMonitor::~WaitMonitor() { close(); }
WaitMonitor::WaitMonitor(WaitMonitor&&) noexcept = default;
WaitMonitor& WaitMonitor::operator=(WaitMonitor&& other) noexcept {
  if (this != &other) close();
  state_ = std::move(other.state_);
  return *this;
}

void WaitMonitor::answer_in_other_waits() {
  if (mpi::has_one_thread()) detail::OpenParts<detail::MonitorState>::instance().add(*state_);
}

void WaitMonitor::close() {
  if (state_ != nullptr) detail::OpenParts<detail::MonitorState>::instance().remove(*state_);
}

void WaitMonitor::wait(std::span<MPI_Request> requests, const WaitPoint& point,
                       const Deadline& deadline) {
  try {
    wait(
        [&] {
          int done = 0;
          const mpi::ReturnedErrors returned{MPI_COMM_WORLD};
          mpi::check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                                 MPI_STATUSES_IGNORE),
                     "MPI_Testall");
          return done != 0;
        },
        point, deadline);
  } catch (...) {
    mpi::record_abandoned(point.activity);  // the requests are still active
    throw;
  }
}

void WaitMonitor::wait(const std::function<bool()>& done, const WaitPoint& point,
                       const Deadline& deadline) {
  mpi::require_not_finalised();
  Backoff backoff{pauses()};
  detail::LongWait long_wait{*state_, point, deadline};
  if (!state_->given_up.empty()) state_->come_back(point);
  const auto is_done = [&] {
    try {
      return done();
    } catch (const UsageError&) {
      throw;  // the operation is complete, or has not begun
    } catch (const detail::UntoldMismatch& error) {
      give_up(point, error);
      throw;
    } catch (const MismatchError&) {
      throw;  // the other ranks find it themselves
    } catch (const LostRanks&) {
      throw;
    } catch (const Error& error) {
      if (state_->control != nullptr) state_->control->throw_if_result_of_loss(error);
      long_wait.throw_deadlock();  // the other error is a result of it
      give_up(point, error);
      throw;
    } catch (...) {
      give_up(point, detail::current_reasons().message);
      throw;
    }
  };
  const bool is_in_mesh = state_->control != nullptr && point.is_in_mesh;
  Deadline next_look{longest_between_looks};
  for (int polls = 1; !is_done(); ++polls) {
    detail::advance_everything(is_in_mesh ? state_->control->lock : nullptr);
    if (polls % polls_per_look == 0 || next_look.passed() || deadline.passed()) {
      long_wait.look();
      next_look = Deadline{longest_between_looks};
    }
    backoff.pause();
  }
}

void WaitMonitor::give_up(const WaitPoint& point, const std::string& reason) {
  tell_reason(*state_, point, reason, {});
}

// The members of a group in shared memory also learn there whom one of them has missed.
void WaitMonitor::give_up(const WaitPoint& point, const Error& error) {
  const auto* const timeout = dynamic_cast<const TimeoutError*>(&error);
  const bool is_of_peer = dynamic_cast<const PeerError*>(&error) != nullptr;
  tell_reason(*state_, point, is_of_peer ? detail::first_cause(error.message()) : error.message(),
              timeout == nullptr ? std::vector<Rank>{} : timeout->missing());
}

void WaitMonitor::leave(const std::string& reason) {
  const Rank self = state_->in_mesh(state_->comm.rank());
  const std::string why =
      fmt::format("rank {} left the mesh by an exception{}{}",
                  state_->names(Rank{state_->comm.rank()}), reason.empty() ? "" : ": ", reason);
  const WaitPoint everything{.scope = detail::Verdict::everything};
  for (int member = 0; member < state_->comm.size(); ++member)
    if (member != state_->comm.rank() && !state_->look(member))
      state_->send(member, detail::verdict_tag, detail::verdict_of(everything, {self}, why));
}

Rank WaitMonitor::in_mesh(int member) const { return state_->in_mesh(member); }

bool WaitMonitor::has_sent() const { return !state_->sent.empty(); }

void WaitMonitor::receive_leftovers(const WaitPoint& point, const Deadline& deadline) {
  struct Counts {
    std::vector<int> sent, coming;  // per member
  };
  MpiMemory<Counts> counts;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm comm = state_->comm.native();
  counts->sent = state_->sent;
  counts->sent.resize(static_cast<std::size_t>(state_->comm.size()));
  counts->coming.resize(counts->sent.size());
  mpi::check(MPI_Ialltoall(counts->sent.data(), 1, MPI_INT, counts->coming.data(), 1, MPI_INT, comm,
                           &request),
             "MPI_Ialltoall");
  counts.wait(request, *this, point, deadline);
  const int coming = std::reduce(counts->coming.begin(), counts->coming.end());
  // A message of the program that has one of the tags may hide one of these for ever.
  const Deadline end{detail::patience().leftovers};
  while (state_->taken < coming && !end.passed()) {
    (void)state_->take<detail::Note>(detail::question_tag);
    (void)state_->take<detail::Note>(detail::answer_tag);
    (void)state_->take<detail::Verdict>(detail::verdict_tag);
  }
}

// MPI may show a message that has come only after it has looked for others.
void WaitMonitor::require_not_given_up(const WaitPoint& point) {
  constexpr int looks = 3;
  for (int i = 0; i < looks; ++i)
    if (const detail::Verdict* departure = state_->hear(point))
      state_->throw_verdict(point, *departure);
}

}  // namespace rankmesh
