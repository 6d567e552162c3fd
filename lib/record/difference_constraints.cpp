// SPDX-License-Identifier: BSD-3-Clause
#include "detail/difference_constraints.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rankmesh::record::detail {
namespace {

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max() / 4;
/// The bounds are scaled in steps of this fraction.
constexpr std::int64_t parts_of_bound = 1024;

}  // namespace

DifferenceConstraints::DifferenceConstraints(std::vector<std::int64_t> bounds)
    : bounds_{std::move(bounds)}, limits_(bounds_.size() * bounds_.size(), no_limit) {}

void DifferenceConstraints::require(std::size_t a, std::size_t b, std::int64_t limit) {
  std::int64_t& known = limits_[a * size() + b];
  known = std::min(known, limit);
}

/// Bellman-Ford over all pairs. The bounds are the edges from and to clock 0, so the shifts begin
/// at the bounds and shrink; the highest shifts are the shortest paths from clock 0, the lowest
/// ones are the negated shortest paths to it.
std::optional<DifferenceConstraints::Shifts> DifferenceConstraints::extreme(
    Extreme which, const Shifts& bounds) const {
  Shifts distance = bounds;
  for (std::size_t round = 0; round <= size(); ++round) {
    bool has_changed = false;
    for (std::size_t a = 0; a < size(); ++a) {
      for (std::size_t b = 0; b < size(); ++b) {
        const std::int64_t edge = which == Extreme::highest ? limit(a, b) : limit(b, a);
        if (edge >= no_limit || distance[a] + edge >= distance[b]) continue;
        distance[b] = distance[a] + edge;
        if (b == 0 || distance[b] < -bounds[b]) return std::nullopt;
        has_changed = true;
      }
    }
    if (has_changed) continue;
    if (which == Extreme::lowest)
      for (std::int64_t& d : distance) d = -d;
    return distance;
  }
  return std::nullopt;
}

DifferenceConstraints::Shifts DifferenceConstraints::scaled_bounds(std::int64_t parts) const {
  Shifts result;
  for (const std::int64_t bound : bounds_)
    result.push_back(bound / parts_of_bound * parts +
                     (bound % parts_of_bound * parts + parts_of_bound - 1) / parts_of_bound);
  return result;
}

/// Moves one clock after the other. Each move keeps all constraints, so the result does too.
void DifferenceConstraints::move_towards_zero(const Shifts& bounds, Shifts& shifts) const {
  for (std::size_t round = 0; round < size(); ++round) {
    bool has_changed = false;
    for (std::size_t n = 1; n < size(); ++n) {
      std::int64_t low = -bounds[n];
      std::int64_t high = bounds[n];
      for (std::size_t other = 0; other < size(); ++other) {
        if (other == n) continue;
        if (limit(other, n) < no_limit) high = std::min(high, shifts[other] + limit(other, n));
        if (limit(n, other) < no_limit) low = std::max(low, shifts[other] - limit(n, other));
      }
      const std::int64_t best = std::clamp<std::int64_t>(0, low, high);
      has_changed = has_changed || best != shifts[n];
      shifts[n] = best;
    }
    if (!has_changed) return;
  }
}

std::optional<DifferenceConstraints::Solution> DifferenceConstraints::solve() const {
  const auto highest = extreme(Extreme::highest, bounds_);
  const auto lowest = extreme(Extreme::lowest, bounds_);
  if (!highest || !lowest) return std::nullopt;

  // The smallest fraction of the bounds for which there is a solution.
  std::int64_t too_small = -1;
  std::int64_t enough = parts_of_bound;
  while (enough - too_small > 1) {
    const std::int64_t middle = (enough + too_small) / 2;
    (extreme(Extreme::highest, scaled_bounds(middle)) ? enough : too_small) = middle;
  }
  const Shifts bounds = scaled_bounds(enough);
  Solution solution;
  solution.shifts = *extreme(Extreme::highest, bounds);
  move_towards_zero(bounds, solution.shifts);
  for (std::size_t n = 0; n < size(); ++n)
    solution.errors.push_back(std::max(std::abs((*highest)[n] - solution.shifts[n]),
                                       std::abs(solution.shifts[n] - (*lowest)[n])));
  return solution;
}

}  // namespace rankmesh::record::detail
