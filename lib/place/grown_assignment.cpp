// SPDX-License-Identifier: BSD-3-Clause
#include "detail/grown_assignment.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

namespace rankmesh::detail {
namespace {

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

std::vector<std::int64_t> grown_assignment(const Objective& objective, std::mt19937_64& random) {
  return Growth{objective, random}.slots();
}

}  // namespace rankmesh::detail
