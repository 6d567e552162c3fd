// SPDX-License-Identifier: BSD-3-Clause
#include "detail/swap_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

namespace rankmesh::detail {
namespace {

// Repeats the numbers 0 to count - 1 endlessly, in a pseudo-random order.
class Cycle {
 public:
  Cycle(std::uint64_t count, std::mt19937_64& random) : count_{count} {
    at_ = random() % count;
    do stride_ = 1 + random() % count;
    while (std::gcd(stride_, count) != 1);
  }
  std::uint64_t next() { return at_ = (at_ + stride_) % count_; }

 private:
  std::uint64_t count_, stride_ = 1, at_ = 0;
};

// The number of pairs that pair_of() enumerates. If the count is even, some pairs occur twice.
std::uint64_t pairs_of(std::uint64_t count) { return count * (count / 2); }

std::pair<std::size_t, std::size_t> pair_of(std::uint64_t number, std::uint64_t count) {
  const std::uint64_t first = number % count;
  return {first, (first + 1 + number / count) % count};
}

// An assignment that fills a machine's tree from the outermost units inward. Each unit grows from a
// random rank: the next rank is always the one that exchanges most with the ranks in the unit. The
// ranks of a unit are then divided among the units inside it in the same way. Different states of
// `random` give different assignments. Takes O(ranks^2 x levels) time.
class Growth {
 public:
  Growth(const Objective& objective, std::mt19937_64& random)
      : objective_{objective}, random_{random} {
    slots_.resize(static_cast<std::size_t>(objective.ranks()));
    gain_.resize(slots_.size());
    for (const SendingFamily& family : objective.families()) {
      // Families of equal importance compete with each other, so each assignment prefers different
      // families.
      const double bytes = family.is_kept ? 1e18 : static_cast<double>(family.bytes);
      weight_.push_back(bytes * std::exp2(static_cast<double>(random() % 5) - 2));
    }
  }

  std::vector<std::int64_t> slots() {
    std::vector<std::int64_t> all(slots_.size());
    std::vector<std::size_t> ranks(slots_.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r] = r;
      all[r] = static_cast<std::int64_t>(r);
    }
    divide(0, std::move(ranks), all);
    return std::move(slots_);
  }

 private:
  // Divides ranks among the units that have these slots. There are as many slots as ranks.
  void divide(std::size_t level, std::vector<std::size_t> ranks,
              const std::vector<std::int64_t>& slots) {
    if (level == objective_.levels()) {
      for (std::size_t i = 0; i < ranks.size(); ++i) slots_[ranks[i]] = slots[i];
      return;
    }
    std::map<std::int64_t, std::vector<std::int64_t>> units;
    for (const std::int64_t slot : slots)
      units[objective_.machine().unit(level, slot)].push_back(slot);
    std::vector<const std::vector<std::int64_t>*> order;
    for (const auto& [unit, own] : units) order.push_back(&own);
    std::ranges::shuffle(order, random_);
    for (const std::vector<std::int64_t>* own : order)
      divide(level + 1, grow(ranks, own->size()), *own);
  }

  // Takes `count` of the ranks.
  std::vector<std::size_t> grow(std::vector<std::size_t>& ranks, std::size_t count) {
    if (count == ranks.size()) return std::exchange(ranks, {});
    for (const std::size_t rank : ranks) gain_[rank] = 0;
    std::vector<std::size_t> taken;
    std::size_t next = random_() % ranks.size();
    while (true) {
      taken.push_back(ranks[next]);
      ranks[next] = ranks.back();
      ranks.pop_back();
      if (taken.size() == count) return taken;
      raise_gains(taken.back());
      next = 0;
      for (std::size_t i = 1; i < ranks.size(); ++i)
        if (gain_[ranks[i]] > gain_[ranks[next]]) next = i;
    }
  }

  // Adds to the gain of each member of the rank's groups what this member exchanges with the rank.
  void raise_gains(std::size_t rank) {
    for (std::size_t f = 0; f < weight_.size(); ++f) {
      const SendingFamily& family = objective_.families()[f];
      if (family.group_of[rank] < 0) continue;
      const auto members = family.group(static_cast<std::size_t>(family.group_of[rank]));
      const std::int32_t place = family.place_of[rank];
      for (const std::int32_t member : members) {
        const auto other = static_cast<std::size_t>(member);
        if (family.pattern != Pattern::chain)
          gain_[other] += weight_[f] / static_cast<double>(members.size());
        else if (std::abs(family.place_of[other] - place) == 1)
          gain_[other] += 2 * weight_[f];
      }
    }
  }

  const Objective& objective_;
  std::mt19937_64& random_;
  std::vector<double> weight_;  // of each family
  std::vector<double> gain_;    // of each rank that is left
  std::vector<std::int64_t> slots_;
};

}  // namespace

SwapSearch::SwapSearch(const Objective& objective, std::int64_t budget)
    : objective_{objective}, budget_{budget} {}

void SwapSearch::improve(TrackedAssignment& assignment) {
  do improve_by_ranks(assignment);
  while (!is_exhausted() && improve_by_groups(assignment));
}

// Ends when no pair has helped for a whole round, or in large meshes for 64 pairs per rank.
void SwapSearch::improve_by_ranks(TrackedAssignment& assignment) {
  const auto ranks = static_cast<std::uint64_t>(objective_.ranks());
  if (ranks < 2) return;
  Cycle pairs{pairs_of(ranks), random_};
  const std::uint64_t patience = std::min(pairs_of(ranks), 64 * ranks);
  for (std::uint64_t failed = 0; failed < patience && !is_exhausted(); ++failed) {
    const auto [a, b] = pair_of(pairs.next(), ranks);
    --budget_;
    if (!assignment.improves(a, b)) continue;
    assignment.swap(a, b);
    failed = 0;
  }
}

// Swaps the slots of two groups of a family. The bytes of this family do not change. Swaps of
// single ranks would first have to split the groups. Returns whether this helps.
bool SwapSearch::improve_by_groups(TrackedAssignment& assignment) {
  const auto ranks = static_cast<std::uint64_t>(objective_.ranks());
  bool has_improved = false;
  for (const SendingFamily& family : objective_.families()) {
    const std::uint64_t groups = family.group_count();
    if (groups < 2) continue;
    Cycle pairs{pairs_of(groups), random_};
    const std::uint64_t patience = std::min(pairs_of(groups), 16 * ranks);
    for (std::uint64_t failed = 0; failed < patience && !is_exhausted(); ++failed) {
      const auto [a, b] = pair_of(pairs.next(), groups);
      if (family.size_of(a) != family.size_of(b)) continue;
      const LevelBytes before = assignment.bytes();
      swap_groups(family.group(a), family.group(b), assignment);
      if (assignment.bytes() < before) {
        has_improved = true;
        failed = 0;
      } else {
        swap_groups(family.group(a), family.group(b), assignment);
      }
    }
  }
  return has_improved;
}

void SwapSearch::swap_groups(std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                             TrackedAssignment& assignment) {
  for (std::size_t i = 0; i < a.size(); ++i)
    assignment.swap(static_cast<std::size_t>(a[i]), static_cast<std::size_t>(b[i]));
  budget_ -= 2 * std::ssize(a);  // a swap takes longer than a test of a swap
}

std::vector<std::int64_t> SwapSearch::changed(const std::vector<std::int64_t>& slots) {
  constexpr std::int64_t most_grown = 2048;  // growing takes O(ranks^2) time
  std::vector<std::int64_t> result = slots;
  const std::uint64_t kind = random_() % 10;
  if (kind < 2) {
    for (std::uint64_t swaps = 2 + random_() % 5; swaps > 0; --swaps)
      std::swap(result[random_() % result.size()], result[random_() % result.size()]);
  } else if (kind < 6) {
    swap_shares(result);
  } else if (kind < 8) {
    mix_units(result);
  } else if (kind < 9 && objective_.ranks() <= most_grown) {
    result = Growth{objective_, random_}.slots();
  } else {
    std::ranges::shuffle(result, random_);
  }
  return result;
}

// Swaps the slots of the members of a group in one unit and of as many members of another group, or
// of the same group, in another unit. If the members moved one by one, the groups would first be in
// more units.
void SwapSearch::swap_shares(std::vector<std::int64_t>& slots) {
  if (objective_.families().empty()) return;
  const SendingFamily& family = objective_.families()[random_() % objective_.families().size()];
  const std::size_t level = random_() % objective_.levels();
  const auto share_of = [&](std::size_t rank) {
    const auto unit_of = [&](std::size_t r) { return objective_.machine().unit(level, slots[r]); };
    std::vector<std::size_t> share;
    if (family.group_of[rank] < 0) return share;
    for (const std::int32_t member : family.group(static_cast<std::size_t>(family.group_of[rank])))
      if (unit_of(static_cast<std::size_t>(member)) == unit_of(rank))
        share.push_back(static_cast<std::size_t>(member));
    return share;
  };
  const std::vector<std::size_t> first = share_of(random_() % slots.size());
  const std::vector<std::size_t> second = share_of(random_() % slots.size());
  if (first == second) return;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i)
    std::swap(slots[first[i]], slots[second[i]]);
}

// Permutes the slots of the ranks of two units of one level.
void SwapSearch::mix_units(std::vector<std::int64_t>& slots) {
  const Machine& machine = objective_.machine();
  const std::size_t level = random_() % objective_.levels();
  const std::int64_t first = machine.unit(level, slots[random_() % slots.size()]);
  const std::int64_t second = machine.unit(level, slots[random_() % slots.size()]);
  std::vector<std::size_t> ranks;
  std::vector<std::int64_t> free;
  for (std::size_t r = 0; r < slots.size(); ++r)
    if (const std::int64_t unit = machine.unit(level, slots[r]); unit == first || unit == second) {
      ranks.push_back(r);
      free.push_back(slots[r]);
    }
  std::ranges::shuffle(free, random_);
  for (std::size_t i = 0; i < ranks.size(); ++i) slots[ranks[i]] = free[i];
}

}  // namespace rankmesh::detail
