// SPDX-License-Identifier: BSD-3-Clause
// How a group in shared memory ends early: its members make different calls, or one of them gives
// up.
//
// The first member that finds the reason writes it as text to the group's Finding, so that all
// members throw the same text. The other members only read this text; they need no message and no
// other rank.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/detail/patience.hpp"
#include "detail/call_descriptor.hpp"
#include "detail/shm_transport.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "wait/detail/wait_messages.hpp"

namespace rankmesh {
namespace {

using shm::Finding;

}  // namespace

// The first member that gives up decides for all what they throw, unless it ends before it has
// written it. None gives up a meeting that others have completed and that it can complete now.
bool ShmTransport::may_give_up(const shm::Progress& progress) {
  const Finding& finding = engine_.finding();
  const std::uint64_t step = is_meeting(progress) ? progress.last_step() : Finding::no_step;
  is_writing_ = is_writing_ || engine_.finding().begin(step);
  return is_writing_ || (!finding.has_met(step) && !is_written());
}

// Waits for a moment until the finding that another member has begun is written.
bool ShmTransport::is_written() const {
  return poll_until([&] { return engine_.finding().is_halted(); },
                    Deadline{detail::patience().finding});
}

// Writes the finding if no other member has.
template <class Compose>
void ShmTransport::write_finding(const std::vector<Rank>& missing, Compose&& compose) {
  Finding& finding = engine_.finding();
  if (!std::exchange(is_writing_, false) && !finding.begin(Finding::no_step)) return;
  const auto [state, text] = compose();
  std::memcpy(finding.text, text.data(), std::min(text.size(), sizeof finding.text - 1));
  finding.missing_count = std::min(missing.size(), Finding::most_missing);
  for (std::size_t i = 0; i < finding.missing_count; ++i) finding.missing[i] = missing[i].value();
  finding.end(state);
}

void ShmTransport::throw_if_ended() {
  if (engine_.is_halted()) end_early();
}

// If a member's process has ended, or a member has given up, the members that find this out report
// it.
void ShmTransport::throw_if_unreadable(const std::optional<shm::FailedRead>& failed) const {
  if (!failed || failed->code == 0 || failed->code == ESRCH) return;
  detail::throw_unreadable(place_.members.rank_of(engine_.group().self),
                           place_.members.rank_of(failed->member), failed->code);
}

void ShmTransport::end_early() {
  Finding& finding = engine_.finding();
  if (engine_.difference() != 0) write_finding({}, [&] { return compare(); });
  // Another member may still be writing. If it ends meanwhile, the text is incomplete.
  (void)is_written();
  engine_.give_up();
  if (messages_ != nullptr) messages_->give_up();
  has_thrown_ = true;
  const shm::Finding::State state = finding.state();  // first: it shows the text
  const std::string text{finding.text, ::strnlen(finding.text, sizeof finding.text)};
  if (state == Finding::gave_up) throw PeerError{text, detail::peer_hint};
  std::vector<Rank> missing{finding.missing, finding.missing + finding.missing_count};
  // A member that comes too late was missing itself, but it wants to know whom to look for.
  if (missing.size() > 1) std::erase(missing, place_.members.ranks.at(place_.self));
  if (state == Finding::ended) throw PeerError{text, detail::peer_hint, std::move(missing)};
  if (state == Finding::timed_out)
    throw TimeoutError{
        text,
        detail::timeout_hint(static_cast<TimeLimit>(finding.limit), finding.missing_count > 0),
        std::move(missing)};
  throw detail::different_calls(text);
}

void ShmTransport::give_up(const Error& why) {
  if (messages_ != nullptr) messages_->give_up();
  has_thrown_ = true;  // this rank knows why
  if (const auto* timeout = dynamic_cast<const TimeoutError*>(&why))
    return write_finding(timeout->missing(), [&] {
      engine_.finding().limit = static_cast<std::uint64_t>(detail::limit_of(why.hint()));
      const bool has_ended = dynamic_cast<const PeerError*>(timeout) != nullptr;
      return Found{has_ended ? Finding::ended : Finding::timed_out, why.message()};
    });
  if (dynamic_cast<const MismatchError*>(&why) != nullptr)  // found on another node
    return write_finding({}, [&] { return Found{Finding::mismatch, why.message()}; });
  write_finding({}, [&] {
    return Found{Finding::gave_up, fmt::format("rank {} gave up '{}': {}",
                                               place_.members.rank_of(engine_.group().self),
                                               place_.members.coordinators.front(), why.message())};
  });
}

bool ShmTransport::have_all_left() {
  if (!has_thrown_) throw_if_ended();
  return engine_.not_left().empty();
}

std::vector<std::int64_t> ShmTransport::not_left() const { return engine_.not_left(); }

void ShmTransport::compare_at_close() {
  if (!has_thrown_ && !engine_.compare_at_close()) end_early();
}

// Lists the calls of all members with their ranks, the smallest set of ranks first.
ShmTransport::Found ShmTransport::compare() const {
  const std::uint64_t step = engine_.first_difference();
  const std::size_t size = engine_.group().size;
  const auto is_known = [&](std::size_t k) {
    const shm::Engine::Published other = engine_.published(k, step);
    return other.is_there || other.closed_after != 0 || k == engine_.group().self;
  };
  (void)poll_until(
      [&] {
        for (std::size_t k = 0; k < size; ++k)
          if (!is_known(k)) return false;
        return true;
      },
      Deadline{detail::patience().calls});
  Finding::State state = Finding::mismatch;
  const detail::BlockCounts counts = counts_at(step);
  std::vector<std::string> calls(size);
  std::vector<std::string> not_yet(size);  // these members are no outliers, so they come last
  for (std::size_t k = 0; k < size; ++k) {
    const shm::Engine::Published other = engine_.published(k, step);
    if (!other.is_there && other.closed_after != 0 && *other.why_left != 0)
      state = Finding::gave_up;
    const bool is_told = other.is_there || other.closed_after != 0;
    (is_told ? calls : not_yet)[k] = call_text(k, step, counts);
  }
  std::string text = place_.members.list(calls, &counts);
  const std::string rest = place_.members.list(not_yet);
  if (!rest.empty()) text += (text.empty() ? "" : "; ") + rest;
  return {state, std::move(text)};
}

// Returns the counts that the members have published for a v-form. Members with other calls have
// none, and neither do groups whose counts take several steps.
detail::BlockCounts ShmTransport::counts_at(std::uint64_t step) const {
  const std::size_t size = engine_.group().size;
  const shm::Engine::Published own = engine_.published(engine_.group().self, step);
  const rankmesh::Operation operation = own.call.operation();
  std::vector<const std::byte*> words(size, nullptr);
  const auto counts = sizeof(detail::CallWord) * static_cast<std::size_t>(detail::v_form_words(
                                                     operation, static_cast<std::int64_t>(size)));
  // The first step of a v-form in shared memory is a whole slot, which begins with the counts.
  const bool is_meeting = own.call.has(CallDescriptor::meeting);
  const std::size_t bytes = is_meeting ? counts : engine_.group().slot_bytes;
  const bool is_v_form = own.is_there && own.call.has(CallDescriptor::blocks);
  if (is_v_form && counts <= engine_.group().slot_bytes)
    for (std::size_t k = 0; k < size; ++k) {
      const shm::Engine::Published other = engine_.published(k, step);
      if (other.is_there && other.call.matches(own.call))
        words[k] = engine_.payload(k, step, bytes);
    }
  return {operation, std::move(words)};
}

std::string ShmTransport::call_text(std::size_t member, std::uint64_t step,
                                    const detail::BlockCounts& block_counts) const {
  const shm::Engine::Published other = engine_.published(member, step);
  // All members have made the same calls before this one, so the call has the same number on all of
  // them.
  const bool is_own_call = engine_.published(engine_.group().self, step).is_there;
  const std::uint64_t call = is_own_call ? engine_.call_of(step) : engine_.calls() + 1;
  const detail::GroupMembers& members = place_.members;
  if (other.is_there) {
    const bool is_v_form = other.call.has(CallDescriptor::blocks);
    const std::string counts =
        is_v_form ? block_counts.text(member, other.call.count) : std::string{};
    return members.text_of(other.call, call, counts);
  }
  if (other.closed_after != 0)
    return members.text_of_departure(other.closed_after - 1, other.why_left);
  return fmt::format("it has not made call {} of {} yet", call, members.coordinators.front());
}

}  // namespace rankmesh
