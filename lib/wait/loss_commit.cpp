// SPDX-License-Identifier: BSD-3-Clause
// The steps that ranks have completed, and their wishes to stop. loss_watch.cpp finds the losses.
#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "detail/loss_watch.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// The committed step of a rank: 1 + the step, and whether it can change no more.
constexpr std::uint64_t frozen = 1;
std::uint64_t committed(std::int64_t step) { return (static_cast<std::uint64_t>(step) + 1) << 1; }

// A commit of a rank: its number, of which the lowest bits suffice, and the step.
constexpr int bits_of_step = 48;
std::uint64_t commit_of(std::uint64_t number, std::int64_t step) {
  return number << bits_of_step |
         (static_cast<std::uint64_t>(step) & ((std::uint64_t{1} << bits_of_step) - 1));
}
std::uint64_t step_in(std::uint64_t commit) {
  return commit & ((std::uint64_t{1} << bits_of_step) - 1);
}

}  // namespace

std::int64_t LossWatch::freeze(RankArea& area) {
  return static_cast<std::int64_t>((area.committed |= frozen) >> 1) - 1;
}

// The wish to stop is written first: whoever sees the commit sees it, too.
void LossWatch::begin_commit(std::int64_t step) {
  if (have_ended_commits_)
    throw UsageError{
        fmt::format("commit of step {}, after the ranks have committed different steps", step),
        "end the program, and begin again from a checkpoint"};
  ++commits_;
  if (!stops && rounds_seen != 0) hear_stops();
  if (stops && board_->own().stop == 0) board_->own().stop = commits_;
  board_->own().commit = commit_of(commits_, step);
}

// No rank goes on to its next commit before all others have seen that the steps differ.
void LossWatch::require_same_step(std::int64_t step) const {
  const std::uint64_t own = commit_of(commits_, step);
  for (std::size_t slot = 0; slot < board_->members(); ++slot) {
    const std::uint64_t other = board_->area(slot).commit;
    if (other == own || other >> bits_of_step != own >> bits_of_step) continue;
    const Rank rank = board_->ranks()[slot];
    throw MismatchError{fmt::format("the ranks commit different steps: rank {} step {}, and rank "
                                    "{} step {}",
                                    names_(board_->self()), step, names_(rank), step_in(other)),
                        "pass the same step to commit() on every rank", false};
  }
}

bool LossWatch::commit(std::int64_t step) {
  std::atomic<std::uint64_t>& own = board_->own().committed;
  std::uint64_t before = own;
  do {
    if ((before & frozen) != 0) return false;
  } while (!own.compare_exchange_weak(before, committed(step)));
  return true;
}

bool LossWatch::is_stop_agreed() const {
  for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot)
    if (const std::uint64_t at = board_->area(slot).stop; at != 0 && at <= commits_) return true;
  return false;
}

// Whoever has a place in the next mesh asks there. Nobody reads this one as a wish in a commit.
void LossWatch::tell_stop() {
  std::uint64_t none = 0;
  if (stops) board_->own().stop.compare_exchange_strong(none, ~std::uint64_t{0});
}

// A rank without a place in the next mesh may say it late.
void LossWatch::hear_stops() {
  const std::lock_guard lock{kept().mutex};
  for (const auto& watch : kept().watches)
    for (std::size_t slot = 0; slot < watch->board_->ranks().size(); ++slot)
      if (watch->board_->area(slot).stop != 0) request_stop();
}

std::optional<std::int64_t> LossWatch::step() const {
  const std::uint64_t own = board_->own().committed >> 1;
  return own == 0 ? std::nullopt : std::optional{static_cast<std::int64_t>(own) - 1};
}

bool LossWatch::have_committed(std::int64_t step) const {
  for (std::size_t slot = 0; slot < board_->members(); ++slot)
    if (board_->area(slot).committed < committed(step)) return false;
  return true;
}

}  // namespace rankmesh::detail
