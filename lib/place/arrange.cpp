// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/arrange.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "detail/candidates.hpp"
#include "detail/objective.hpp"
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
  explicit Pool(const Objective& objective) : objective_{objective} {}

  // Returns whether the candidate is better than all others.
  bool add(std::string how, std::vector<std::int64_t> slots) {
    LevelBytes bytes = objective_.evaluate(slots);
    const auto place = std::ranges::lower_bound(best_, bytes, {}, &Candidate::bytes);
    if (place != best_.end() && place->bytes == bytes) return false;
    const bool is_best = place == best_.begin();
    best_.insert(place, {std::move(how), std::move(slots), std::move(bytes)});
    if (best_.size() > most) best_.pop_back();
    return is_best;
  }

  [[nodiscard]] const std::vector<Candidate>& best() const { return best_; }

 private:
  static constexpr std::size_t most = 4;
  const Objective& objective_;
  std::vector<Candidate> best_;
};

// Swaps the slots of two ranks as long as this lowers the objective.
class SwapSearch {
 public:
  SwapSearch(const Objective& objective, std::int64_t budget)
      : objective_{objective}, budget_{budget} {}

  [[nodiscard]] bool is_exhausted() const { return budget_ <= 0; }
  std::mt19937_64& random() { return random_; }

  // Tries all pairs until none helps. Large meshes have too many pairs, so random ones are tried.
  void improve(std::vector<std::int64_t>& slots) {
    constexpr std::int64_t few = 64;
    const std::int64_t ranks = objective_.ranks();
    if (ranks > few) {
      improve_randomly(slots);
      return;
    }
    for (bool has_improved = true; has_improved && !is_exhausted();) {
      has_improved = false;
      for (std::int64_t a = 0; a < ranks; ++a)
        for (std::int64_t b = a + 1; b < ranks; ++b)
          has_improved = try_swap(a, b, slots) || has_improved;
      if (!has_improved) has_improved = swap_groups(slots);
    }
  }

  void shuffle(std::vector<std::int64_t>& slots, int swaps) {
    for (int i = 0; i < swaps; ++i)
      std::swap(slots[random_() % slots.size()], slots[random_() % slots.size()]);
  }

 private:
  void improve_randomly(std::vector<std::int64_t>& slots) {
    const std::int64_t ranks = objective_.ranks();
    const std::int64_t patience = 4 * ranks;  // swaps in a row that do not help
    for (std::int64_t failed = 0; failed < patience && !is_exhausted(); ++failed) {
      const auto a = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(ranks));
      const auto b = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(ranks));
      if (try_swap(a, b, slots)) failed = 0;
    }
  }

  // Two groups of a family change their places, which leaves the bytes of this family as they are.
  // Swaps of single ranks would first have to split the groups. Returns whether this helps.
  bool swap_groups(std::vector<std::int64_t>& slots) {
    const std::int64_t cost =
        objective_.members() * static_cast<std::int64_t>(objective_.levels()) + 1;
    LevelBytes best = objective_.evaluate(slots);
    bool has_improved = false;
    objective_.each_pair_of_groups([&](std::span<const std::int32_t> a,
                                       std::span<const std::int32_t> b) {
      if (is_exhausted()) return;
      const auto swap = [&] {
        for (std::size_t i = 0; i < a.size(); ++i)
          std::swap(slots[static_cast<std::size_t>(a[i])], slots[static_cast<std::size_t>(b[i])]);
      };
      swap();
      budget_ -= cost;
      LevelBytes bytes = objective_.evaluate(slots);
      if (bytes < best) {
        best = std::move(bytes);
        has_improved = true;
      } else {
        swap();
      }
    });
    return has_improved;
  }

  bool try_swap(std::int64_t a, std::int64_t b, std::vector<std::int64_t>& slots) {
    const std::size_t inner = objective_.levels() - 1;
    std::int64_t& first = slots[static_cast<std::size_t>(a)];
    std::int64_t& second = slots[static_cast<std::size_t>(b)];
    --budget_;
    if (objective_.machine().unit(inner, first) == objective_.machine().unit(inner, second))
      return false;
    const LevelBytes before = objective_.around(a, b, slots);
    std::swap(first, second);
    const LevelBytes after = objective_.around(a, b, slots);
    budget_ -= 2 * objective_.visited_around(a, b);
    if (after < before) return true;
    std::swap(first, second);
    return false;
  }

  const Objective& objective_;
  std::int64_t budget_;
  std::mt19937_64 random_{1};
};

// Improves the candidates, and then random assignments, until further ones do not help.
void search(const Objective& objective, const LevelBytes& bound, std::int64_t budget, Pool& pool) {
  SwapSearch swaps{objective, budget};
  const auto is_done = [&] { return pool.best().front().bytes == bound || swaps.is_exhausted(); };
  const std::vector<Candidate> starts = pool.best();
  for (const Candidate& start : starts) {
    if (is_done()) return;
    std::vector<std::int64_t> slots = start.slots;
    swaps.improve(slots);
    pool.add("search", std::move(slots));
  }
  const std::int64_t patience = 100 + 10 * objective.ranks();
  for (std::int64_t failed = 0; failed < patience && !is_done(); ++failed) {
    std::vector<std::int64_t> slots = pool.best().front().slots;
    if (failed % 2 == 0)
      swaps.shuffle(slots, 4);
    else
      std::ranges::shuffle(slots, swaps.random());
    swaps.improve(slots);
    if (pool.add("search", std::move(slots))) failed = 0;
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
  Pool pool{objective};
  std::vector<std::int64_t> today(static_cast<std::size_t>(plan.world_size()));
  std::iota(today.begin(), today.end(), 0);
  pool.add("today", today);
  const detail::MeshGrid grid{plan, used};
  if (grid.is_whole()) {
    const auto add = [&](std::string how, std::vector<std::int64_t> slots) {
      pool.add(std::move(how), std::move(slots));
    };
    // One evaluation visits all members on all levels.
    const std::int64_t cost =
        objective.members() * static_cast<std::int64_t>(objective.levels()) + 1;
    constexpr std::int64_t candidate_budget = 60'000'000;
    const std::int64_t affordable = std::max<std::int64_t>(8, candidate_budget / cost);
    grid.each_folding(plan, traffic,
                      static_cast<std::size_t>(std::min<std::int64_t>(16, affordable)), add);
    grid.each_order(std::min<std::int64_t>(5040, affordable), add);
  }
  search(objective, bound, options.search_budget, pool);
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
