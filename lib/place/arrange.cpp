// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/arrange.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "detail/candidates.hpp"
#include "detail/objective.hpp"
#include "detail/swap_search.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using detail::LevelBytes;
using detail::Objective;

struct Candidate {
  std::string how;
  std::vector<std::int64_t> slots;
  LevelBytes bytes;
};

// The best candidates with different bytes, the best one first.
class Pool {
 public:
  void add(std::string how, std::vector<std::int64_t> slots, LevelBytes bytes) {
    const auto place = std::ranges::lower_bound(best_, bytes, {}, &Candidate::bytes);
    if (place != best_.end() && place->bytes == bytes) return;
    best_.insert(place, {std::move(how), std::move(slots), std::move(bytes)});
    if (best_.size() > most) best_.pop_back();
  }

  [[nodiscard]] const std::vector<Candidate>& best() const { return best_; }

 private:
  static constexpr std::size_t most = 4;
  std::vector<Candidate> best_;
};

// Improves the candidates, and then changed and new assignments, until these do not help either.
void search(const Objective& objective, const LevelBytes& bound, std::int64_t budget, Pool& pool) {
  detail::SwapSearch swaps{objective, budget};
  const auto is_done = [&] { return pool.best().front().bytes == bound || swaps.is_exhausted(); };
  const std::vector<Candidate> starts = pool.best();
  detail::TrackedAssignment assignment{objective, starts.front().slots};
  for (const Candidate& start : starts) {
    if (is_done()) return;
    assignment.assign(start.slots);
    swaps.improve(assignment);
    pool.add("search", assignment.slots(), assignment.bytes());
  }
  // An equally good assignment replaces the present one, so that the search moves on.
  std::vector<std::int64_t> present = pool.best().front().slots;
  LevelBytes least = pool.best().front().bytes;
  const std::int64_t patience = 100 + 10 * objective.ranks();
  for (std::int64_t failed = 0; failed < patience && !is_done(); ++failed) {
    assignment.assign(swaps.changed(present));
    swaps.improve(assignment);
    if (assignment.bytes() < least) failed = 0;
    if (assignment.bytes() <= least) {
      least = assignment.bytes();
      present = assignment.slots();
    }
    pool.add("search", assignment.slots(), assignment.bytes());
  }
}

Arrangement as_arrangement(const Candidate& candidate) {
  return {candidate.slots, {candidate.bytes.begin() + 1, candidate.bytes.end()}, candidate.how};
}

}  // namespace

Arrangements arrange(const MeshPlan& plan, const Machine& machine,
                     std::span<const FamilyTraffic> traffic, const ArrangeOptions& options) {
  constexpr std::int64_t most_ranks = std::int64_t{1} << 20;
  if (plan.world_size() > most_ranks)
    throw UsageError{fmt::format("a mesh of {} ranks is too large to be arranged; the limit is {}",
                                 plan.world_size(), most_ranks),
                     "plan a smaller mesh with the same dimensions"};
  const Machine used = machine.first_slots(plan.world_size());
  const Objective objective{plan, used, traffic, options.kept_in_nodes};
  const LevelBytes bound = objective.bound();
  Pool pool;
  const auto add = [&](std::string how, std::vector<std::int64_t> slots) {
    LevelBytes bytes = objective.evaluate(slots);
    pool.add(std::move(how), std::move(slots), std::move(bytes));
  };
  std::vector<std::int64_t> today(static_cast<std::size_t>(plan.world_size()));
  std::iota(today.begin(), today.end(), 0);
  add("today", today);
  const detail::MeshGrid grid{plan, used};
  if (grid.is_whole()) {
    // One evaluation visits all members on all levels.
    const std::int64_t cost =
        objective.members() * static_cast<std::int64_t>(objective.levels()) + 1;
    constexpr std::int64_t candidate_budget = 60'000'000;
    const std::int64_t affordable = std::max<std::int64_t>(8, candidate_budget / cost);
    grid.each_folding(plan, traffic,
                      static_cast<std::size_t>(std::min<std::int64_t>(16, affordable)), add);
    grid.each_order(std::min<std::int64_t>(5040, affordable), add);
  }
  const std::int64_t budget = objective.ranks() <= 128 ? 10'000'000 : 2'000'000;
  search(objective, bound, options.search_budget.value_or(budget), pool);
  Arrangements result;
  result.best = as_arrangement(pool.best().front());
  if (pool.best().size() > 1) result.runner_up = as_arrangement(pool.best()[1]);
  const LevelBytes today_bytes = objective.evaluate(today);
  result.today = {today, {today_bytes.begin() + 1, today_bytes.end()}, "today"};
  result.bound = {bound.begin() + 1, bound.end()};
  result.is_exact = pool.best().front().bytes == bound;
  return result;
}

}  // namespace rankmesh
