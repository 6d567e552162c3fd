// SPDX-License-Identifier: BSD-3-Clause
#include "detail/tracked_assignment.hpp"

#include <algorithm>
#include <utility>

namespace rankmesh::detail {
namespace {

// The first share of a group whose unit is not smaller, among `count` sorted shares.
template <class Share>
Share* find_share(Share* first, std::int64_t count, std::int32_t unit) {
  return std::lower_bound(first, first + count, unit,
                          [](const auto& share, std::int32_t u) { return share.unit < u; });
}

}  // namespace

TrackedAssignment::TrackedAssignment(const Objective& objective, std::vector<std::int64_t> slots)
    : objective_{objective} {
  const auto add_level = [&](const SendingFamily& family, std::size_t level, std::size_t place) {
    levels_.push_back({.family = &family,
                       .level = level,
                       .place = place,
                       .most = limit_on(objective.machine(), level, family.most_between_nodes),
                       .shares = {},
                       .spreads = {}});
    if (family.pattern == Pattern::chain) return;
    levels_.back().shares.resize(family.members.size());
    levels_.back().spreads.resize(family.group_count());
  };
  for (const SendingFamily& family : objective.families())
    if (family.is_kept) add_level(family, objective.machine().node_level(), 0);
  for (std::size_t l = 0; l < objective.levels(); ++l)
    for (const SendingFamily& family : objective.families())
      if (!family.is_kept) add_level(family, l, l + 1);
  assign(std::move(slots));
}

void TrackedAssignment::assign(std::vector<std::int64_t> slots) {
  slots_ = std::move(slots);
  bytes_ = objective_.evaluate(slots_);
  units_.resize(objective_.levels() * slots_.size());
  for (std::size_t l = 0; l < objective_.levels(); ++l)
    for (std::size_t r = 0; r < slots_.size(); ++r)
      unit(l, r) = static_cast<std::int32_t>(objective_.machine().unit(l, slots_[r]));
  for (Level& level : levels_) {
    std::ranges::fill(level.spreads, Spread{});
    for (std::size_t g = 0; g < level.spreads.size(); ++g)
      for (const std::int32_t rank : level.family->group(g))
        add(level, static_cast<std::int32_t>(g), unit(level.level, static_cast<std::size_t>(rank)),
            1);
  }
}

std::int64_t TrackedAssignment::bytes_of(const Level& level, std::size_t group,
                                         const Spread& spread) {
  const SendingFamily& family = *level.family;
  if (family.is_kept) return spread.units;
  const std::int64_t size = family.size_of(group);
  return bytes_between(family.pattern, family.bytes, level.most, size,
                       {spread.units, spread.squares, 0});
}

std::int64_t TrackedAssignment::change_of_move(const Level& level, std::int32_t group,
                                               std::int32_t from, std::int32_t to) {
  if (group < 0) return 0;
  const auto g = static_cast<std::size_t>(group);
  const Spread& now = level.spreads[g];
  const Share* const first = level.shares.data() + level.family->starts[g];
  const Share* const target = find_share(first, now.units, to);
  const std::int64_t left = find_share(first, now.units, from)->count;
  const std::int64_t reached =
      target != first + now.units && target->unit == to ? target->count : 0;
  const Spread then{now.units - (left == 1 ? 1 : 0) + (reached == 0 ? 1 : 0),
                    now.squares - (2 * left - 1) + (2 * reached + 1)};
  return bytes_of(level, g, then) - bytes_of(level, g, now);
}

std::int64_t TrackedAssignment::crossings(const Level& level, std::size_t rank,
                                          std::size_t other) const {
  const SendingFamily& family = *level.family;
  const std::int32_t group = family.group_of[rank];
  if (group < 0) return 0;
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t place = family.place_of[rank];
  std::int64_t change = 0;
  for (const std::int64_t at : {place - 1, place + 1}) {
    if (at < family.starts[g] || at >= family.starts[g + 1]) continue;
    const auto neighbour = static_cast<std::size_t>(family.members[static_cast<std::size_t>(at)]);
    if (neighbour == other) continue;  // these two are in different units before and after
    const std::int32_t its = unit(level.level, neighbour);
    change += (its != unit(level.level, other) ? 1 : 0) - (its != unit(level.level, rank) ? 1 : 0);
  }
  return change;
}

std::int64_t TrackedAssignment::change(const Level& level, std::size_t a, std::size_t b) const {
  const SendingFamily& family = *level.family;
  if (family.pattern == Pattern::chain)
    return 2 * family.bytes * (crossings(level, a, b) + crossings(level, b, a));
  if (family.group_of[a] == family.group_of[b]) return 0;
  const std::int32_t from = unit(level.level, a);
  const std::int32_t to = unit(level.level, b);
  return change_of_move(level, family.group_of[a], from, to) +
         change_of_move(level, family.group_of[b], to, from);
}

bool TrackedAssignment::improves(std::size_t a, std::size_t b) const {
  std::int64_t sum = 0;
  std::size_t place = 0;
  for (const Level& level : levels_) {
    if (level.place != place) {
      if (sum != 0) return sum < 0;
      place = level.place;
    }
    if (unit(level.level, a) != unit(level.level, b)) sum += change(level, a, b);
  }
  return sum < 0;
}

void TrackedAssignment::add(Level& level, std::int32_t group, std::int32_t unit,
                            std::int32_t count) {
  if (group < 0) return;
  const auto g = static_cast<std::size_t>(group);
  Spread& spread = level.spreads[g];
  Share* const first = level.shares.data() + level.family->starts[g];
  Share* const end = first + spread.units;
  Share* const share = find_share(first, spread.units, unit);
  if (share == end || share->unit != unit) {  // the unit gets its first member
    std::move_backward(share, end, end + 1);
    *share = {unit, 0};
    ++spread.units;
  }
  spread.squares += count * (2 * std::int64_t{share->count} + count);  // (a + b)^2 - a^2
  share->count += count;
  if (share->count > 0) return;
  std::move(share + 1, first + spread.units, share);
  --spread.units;
}

void TrackedAssignment::swap(std::size_t a, std::size_t b) {
  for (Level& level : levels_) {
    const std::int32_t from = unit(level.level, a);
    const std::int32_t to = unit(level.level, b);
    if (from == to) continue;
    bytes_[level.place] += change(level, a, b);
    const std::int32_t group_a = level.family->group_of[a];
    const std::int32_t group_b = level.family->group_of[b];
    if (level.family->pattern == Pattern::chain || group_a == group_b) continue;
    // A member leaves before another one enters, because a group has only as many shares as
    // members.
    add(level, group_a, from, -1);
    add(level, group_a, to, 1);
    add(level, group_b, to, -1);
    add(level, group_b, from, 1);
  }
  for (std::size_t l = 0; l < objective_.levels(); ++l) std::swap(unit(l, a), unit(l, b));
  std::swap(slots_[a], slots_[b]);
}

}  // namespace rankmesh::detail
