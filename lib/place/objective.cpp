// SPDX-License-Identifier: BSD-3-Clause
#include "detail/objective.hpp"

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

__extension__ using WideBytes = __int128;

}  // namespace

std::int64_t bytes_between(Pattern pattern, std::int64_t bytes, std::int64_t size,
                           std::int64_t units, std::int64_t sum_of_squares,
                           std::int64_t crossing_neighbours) {
  if (units < 2) return 0;
  switch (pattern) {
    case Pattern::ring:
      return units * bytes;
    case Pattern::tree:
      return (units - 1) * static_cast<std::int64_t>(WideBytes{bytes} * size / (size - 1));
    case Pattern::all_to_all:
      return static_cast<std::int64_t>(WideBytes{size * size - sum_of_squares} * bytes /
                                       (size - 1));
    case Pattern::chain:
      return 2 * crossing_neighbours * bytes;
  }
  return 0;
}

namespace {

void require_disjoint(const GroupFamily& family, std::int64_t ranks) {
  if (family.coverage(ranks) == Coverage::overlapping)
    throw UsageError{
        fmt::format("the groups of '{}' overlap, so their traffic is not known", family.name()),
        "give the traffic of families whose groups do not overlap"};
}

}  // namespace

void require_traffic(const MeshPlan& plan, const Machine& machine,
                     std::span<const FamilyTraffic> traffic) {
  const std::int64_t ranks = plan.world_size();
  if (machine.slot_count() < ranks)
    throw UsageError{fmt::format("the mesh has {}, but the machine has {} slots",
                                 count_text(ranks, "rank"), machine.slot_count()),
                     "use a machine with a slot for each rank"};
  std::int64_t left = (std::int64_t{1} << 61) / ranks;
  for (const FamilyTraffic& t : traffic) {
    // In every pattern, at most two times the bytes of each rank leave its units.
    if (t.bytes < 0 || t.bytes > left || t.most_between_nodes < 0 || t.most_between_nodes > t.bytes)
      throw UsageError{fmt::format("the bytes of '{}' are negative, or too many to add up", t.name),
                       "give the bytes that one rank sends in one step"};
    if (t.most_between_nodes > 0 && t.pattern != Pattern::all_to_all)
      throw UsageError{
          fmt::format("the bytes of '{}' between nodes are limited, but its pattern is {}", t.name,
                      to_string(t.pattern)),
          "leave out the limit, or use the pattern all-to-all"};
    left -= t.bytes;
    require_disjoint(plan.groups(t.name), ranks);
  }
}

Objective::Objective(const MeshPlan& plan, const Machine& machine,
                     std::span<const FamilyTraffic> traffic,
                     std::span<const std::string> kept_in_nodes)
    : machine_{machine}, ranks_{plan.world_size()} {
  require_traffic(plan, machine, traffic);
  for (const FamilyTraffic& t : traffic) add_family(plan.groups(t.name), t, false);
  for (const std::string& name : kept_in_nodes)
    add_family(plan.groups(name), {name, 0, Pattern::ring}, true);
  for (std::size_t l = 0; l < levels(); ++l) {
    count_.emplace_back(static_cast<std::size_t>(machine.unit_count(l)));
    stamp_.emplace_back(static_cast<std::size_t>(machine.unit_count(l)), -1);
  }
}

void Objective::add_family(const GroupFamily& family, const FamilyTraffic& traffic, bool is_kept) {
  require_disjoint(family, ranks_);
  SendingFamily f{
      traffic.pattern, traffic.bytes, traffic.most_between_nodes, is_kept, {}, {0}, {}, {}};
  f.group_of.resize(static_cast<std::size_t>(ranks_), -1);
  f.place_of.resize(static_cast<std::size_t>(ranks_), -1);
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    family.group(g).for_each([&](Rank rank) {
      f.group_of[rank.to_size()] = static_cast<std::int32_t>(g);
      f.place_of[rank.to_size()] = static_cast<std::int32_t>(f.members.size());
      f.members.push_back(static_cast<std::int32_t>(rank.value()));
    });
    f.starts.push_back(static_cast<std::int64_t>(f.members.size()));
  }
  members_count_ += static_cast<std::int64_t>(f.members.size());
  families_.push_back(std::move(f));
}

void Objective::add_group(const SendingFamily& family, std::size_t group,
                          std::span<const std::int64_t> slots, LevelBytes& to) const {
  const std::int64_t begin = family.starts[group];
  const std::int64_t end = family.starts[group + 1];
  for (std::size_t l = 0; l < levels(); ++l) {
    if (family.is_kept && l != machine_.node_level()) continue;
    ++mark_;
    std::int64_t units = 0;
    std::int64_t squares = 0;
    std::int64_t crossings = 0;
    std::int64_t last = -1;
    for (std::int64_t m = begin; m < end; ++m) {
      const std::int32_t rank = family.members[static_cast<std::size_t>(m)];
      const std::int64_t slot = slots.empty() ? rank : slots[static_cast<std::size_t>(rank)];
      const std::int64_t unit = machine_.unit(l, slot);
      std::int64_t& stamp = stamp_[l][static_cast<std::size_t>(unit)];
      std::int64_t& count = count_[l][static_cast<std::size_t>(unit)];
      if (stamp != mark_) {
        stamp = mark_;
        count = 0;
        ++units;
      }
      squares += 2 * count + 1;  // (count + 1)^2 - count^2
      ++count;
      crossings += last >= 0 && last != unit ? 1 : 0;
      last = unit;
    }
    if (family.is_kept)
      to[0] += units - 1;
    else
      to[l + 1] += limited(
          bytes_between(family.pattern, family.bytes, end - begin, units, squares, crossings),
          l <= machine_.node_level() ? family.most_between_nodes : 0, end - begin);
  }
}

LevelBytes Objective::evaluate(std::span<const std::int64_t> slots) const {
  LevelBytes bytes(levels() + 1);
  for (const SendingFamily& family : families_)
    for (std::size_t g = 0; g < family.group_count(); ++g) add_group(family, g, slots, bytes);
  return bytes;
}

LevelBytes Objective::bound() const {
  LevelBytes bytes(levels() + 1);
  for (const SendingFamily& family : families_)
    for (std::size_t g = 0; g < family.group_count(); ++g)
      for (std::size_t l = 0; l < levels(); ++l) {
        const std::int64_t size = family.size_of(g);
        const std::int64_t largest = machine_.largest(l);
        const std::int64_t units = (size + largest - 1) / largest;
        const std::int64_t rest = size - (units - 1) * largest;
        if (family.is_kept && l != machine_.node_level()) continue;
        if (family.is_kept) bytes[0] += units - 1;
        bytes[l + 1] +=
            limited(bytes_between(family.pattern, family.bytes, size, units,
                                  (units - 1) * largest * largest + rest * rest, units - 1),
                    l <= machine_.node_level() ? family.most_between_nodes : 0, size);
      }
  return bytes;
}

}  // namespace rankmesh::detail
