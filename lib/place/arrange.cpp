// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/arrange.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/objective.hpp"
#include "detail/swap_search.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using detail::LevelBytes;
using detail::Objective;

constexpr std::size_t most_foldings = 100'000;

// The dimensions of the first view of a mesh, the coordinates of all ranks, and the slots in the
// order of the machine's tree.
class MeshGrid {
 public:
  using Take = std::function<void(std::string how, std::vector<std::int64_t> slots)>;

  MeshGrid(const MeshPlan& plan, const Machine& machine);

  // Whether the first view has all ranks. Otherwise there are no candidates.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

  // Calls `take(how, slots)` for each order of the dimensions, `most` times at most.
  void each_order(std::int64_t most, const Take& take) const;

  // Calls `take(how, slots)` for the best foldings, `most` times at most. Foldings are compared by
  // the traffic of families along the dimensions of the view. There are foldings only if all units
  // of each level have the same size.
  void each_folding(const MeshPlan& plan, std::span<const FamilyTraffic> traffic, std::size_t most,
                    const Take& take) const;

 private:
  struct Dimension {
    std::string name;
    std::int64_t size;
  };
  // factors[level][dimension]
  using Folding = std::vector<std::vector<std::int64_t>>;

  void collect(std::size_t level, std::size_t dimension, std::int64_t left,
               std::vector<std::int64_t>& rest, Folding& folding,
               std::vector<Folding>& found) const;
  [[nodiscard]] std::vector<std::int64_t> score(const Folding& folding, const MeshPlan& plan,
                                                std::span<const FamilyTraffic> traffic) const;
  [[nodiscard]] std::vector<std::int64_t> slots_of(const Folding& folding) const;
  [[nodiscard]] std::string text_of(const Folding& folding) const;

  bool is_whole_ = false;
  std::size_t node_level_ = 0;
  std::vector<Dimension> dimensions_;
  std::vector<std::vector<std::int64_t>> coordinates_;  // [dimension][rank]
  std::vector<std::int64_t> tree_;                      // the slots in the order of the tree
  std::vector<std::int64_t> radices_;  // the units of each level in a unit of the level before it
};

MeshGrid::MeshGrid(const MeshPlan& plan, const Machine& machine) {
  if (plan.views().empty() || plan.views().front().size() != plan.world_size()) return;
  is_whole_ = true;
  node_level_ = machine.node_level();
  const Layout& view = plan.views().front();
  std::vector<std::size_t> used;  // dimensions of size 1 do not matter
  for (std::size_t d = 0; d < view.dimensions().size(); ++d)
    if (view.dimensions()[d].size > 1) {
      dimensions_.push_back({view.dimensions()[d].name, view.dimensions()[d].size});
      used.push_back(d);
    }
  coordinates_.resize(dimensions_.size());
  for (std::int64_t r = 0; r < plan.world_size(); ++r) {
    const auto coordinates = view.coordinates(r);
    for (std::size_t d = 0; d < used.size(); ++d)
      coordinates_[d].push_back((*coordinates)[used[d]].value());
  }
  tree_.resize(static_cast<std::size_t>(machine.slot_count()));
  std::iota(tree_.begin(), tree_.end(), 0);
  std::ranges::stable_sort(tree_, [&](std::int64_t a, std::int64_t b) {
    for (std::size_t l = 0; l < machine.levels().size(); ++l)
      if (machine.unit(l, a) != machine.unit(l, b)) return machine.unit(l, a) < machine.unit(l, b);
    return false;
  });
  std::int64_t units = 1;
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    if (machine.smallest(l) != machine.largest(l)) {
      radices_.clear();
      return;  // no folding fills units of different sizes
    }
    radices_.push_back(machine.unit_count(l) / units);
    units = machine.unit_count(l);
  }
  radices_.push_back(machine.slot_count() / units);
}

void MeshGrid::each_order(std::int64_t most, const Take& take) const {
  std::vector<std::size_t> order(dimensions_.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    if (most-- == 0) return;
    std::vector<std::int64_t> slots(tree_.size());
    std::vector<std::string> names;
    for (const std::size_t d : order) {
      names.push_back(dimensions_[d].name);
      for (std::size_t r = 0; r < slots.size(); ++r)
        slots[r] = slots[r] * dimensions_[d].size + coordinates_[d][r];
    }
    for (std::int64_t& slot : slots) slot = tree_[static_cast<std::size_t>(slot)];
    take(fmt::format("order {}", fmt::join(names, ",")), std::move(slots));
  } while (std::ranges::next_permutation(order).found);
}

// Chooses the factors of one level, dimension by dimension. The product of the remaining factors
// must be `left`.
void MeshGrid::collect(std::size_t level, std::size_t dimension, std::int64_t left,
                       std::vector<std::int64_t>& rest, Folding& folding,
                       std::vector<Folding>& found) const {
  if (found.size() >= most_foldings) return;
  if (level == radices_.size()) {
    found.push_back(folding);
    return;
  }
  if (dimension == dimensions_.size()) {
    if (left == 1)
      collect(level + 1, 0, level + 1 < radices_.size() ? radices_[level + 1] : 1, rest, folding,
              found);
    return;
  }
  for (std::int64_t factor = 1; factor <= std::min(left, rest[dimension]); ++factor) {
    if (left % factor != 0 || rest[dimension] % factor != 0) continue;
    folding[level][dimension] = factor;
    rest[dimension] /= factor;
    collect(level, dimension + 1, left / factor, rest, folding, found);
    rest[dimension] *= factor;
  }
  folding[level][dimension] = 1;
}

// Computes the bytes of all families along dimensions of the view by arithmetic. In a folding, the
// factors up to a level give the number of units of this level that a group touches, and each of
// these units has the same number of ranks of the group.
std::vector<std::int64_t> MeshGrid::score(const Folding& folding, const MeshPlan& plan,
                                          std::span<const FamilyTraffic> traffic) const {
  std::vector<std::int64_t> bytes(radices_.size() - 1);
  for (const FamilyTraffic& t : traffic) {
    const GroupFamily& family = plan.groups(t.name);
    std::int64_t units = 1;
    for (std::size_t l = 0; l < bytes.size(); ++l) {
      for (std::size_t d = 0; d < dimensions_.size(); ++d)
        if (std::ranges::find(family.dimensions(), dimensions_[d].name) !=
            family.dimensions().end())
          units *= folding[l][d];
      const std::int64_t size = family.group_size();
      const std::int64_t inside = size / std::min(units, size);
      bytes[l] +=
          family.group_count() *
          detail::bytes_between(t.pattern, t.bytes, l <= node_level_ ? t.most_between_nodes : 0,
                                size, {units, units * inside * inside, units - 1});
    }
  }
  return bytes;
}

std::vector<std::int64_t> MeshGrid::slots_of(const Folding& folding) const {
  // The factors of a dimension are the digits of its coordinate, the outermost first.
  std::vector<std::int64_t> slots(tree_.size());
  std::vector<std::int64_t> weight(dimensions_.size(), 1);
  for (std::size_t d = 0; d < dimensions_.size(); ++d) weight[d] = dimensions_[d].size;
  for (const auto& factors : folding)
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      weight[d] /= factors[d];
      for (std::size_t r = 0; r < slots.size(); ++r)
        slots[r] = slots[r] * factors[d] + coordinates_[d][r] / weight[d] % factors[d];
    }
  for (std::int64_t& slot : slots) slot = tree_[static_cast<std::size_t>(slot)];
  return slots;
}

std::string MeshGrid::text_of(const Folding& folding) const {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    std::vector<std::int64_t> factors;
    for (const auto& level : folding) factors.push_back(level[d]);
    parts.push_back(fmt::format("{} {}", dimensions_[d].name, fmt::join(factors, "*")));
  }
  return fmt::format("folded: {}", fmt::join(parts, ", "));
}

void MeshGrid::each_folding(const MeshPlan& plan, std::span<const FamilyTraffic> traffic,
                            std::size_t most, const Take& take) const {
  if (radices_.empty()) return;
  std::vector<std::int64_t> rest;
  for (const Dimension& dimension : dimensions_) rest.push_back(dimension.size);
  Folding folding(radices_.size(), std::vector<std::int64_t>(dimensions_.size(), 1));
  std::vector<Folding> found;
  collect(0, 0, radices_.front(), rest, folding, found);
  std::vector<std::pair<std::vector<std::int64_t>, std::size_t>> scores;
  for (std::size_t f = 0; f < found.size(); ++f)
    scores.emplace_back(score(found[f], plan, traffic), f);
  const std::size_t count = std::min(most, scores.size());
  std::ranges::partial_sort(scores, scores.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t f = 0; f < count; ++f)
    take(text_of(found[scores[f].second]), slots_of(found[scores[f].second]));
}

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
  const MeshGrid grid{plan, used};
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
