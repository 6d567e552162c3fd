// SPDX-License-Identifier: BSD-3-Clause
#include "detail/objective.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

__extension__ using WideBytes = __int128;

}  // namespace

std::int64_t bytes_between(Pattern pattern, std::int64_t bytes, std::int64_t most,
                           std::int64_t size, const GroupSpread& spread) {
  if (spread.units < 2) return 0;
  const auto all = [&]() -> std::int64_t {
    switch (pattern) {
      case Pattern::ring:
        return spread.units * bytes;
      case Pattern::tree:
        return (spread.units - 1) * static_cast<std::int64_t>(WideBytes{bytes} * size / (size - 1));
      case Pattern::all_to_all:
        return static_cast<std::int64_t>(WideBytes{size * size - spread.squares} * bytes /
                                         (size - 1));
      case Pattern::chain:
        return 2 * spread.crossings * bytes;
    }
    return 0;
  }();
  return most == 0 ? all : std::min(all, most * size);
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
  for (std::size_t l = 0; l < levels(); ++l) counts_.emplace_back(machine.unit_count(l));
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
    f.starts.push_back(std::ssize(f.members));
  }
  members_count_ += std::ssize(f.members);
  families_.push_back(std::move(f));
}

void Objective::add_group(const SendingFamily& family, std::size_t group,
                          std::span<const std::int64_t> slots, LevelBytes& to) const {
  for (std::size_t l = 0; l < levels(); ++l) {
    if (family.is_kept && l != machine_.node_level()) continue;
    for (const std::int32_t rank : family.group(group))
      counts_[l].add(
          machine_.unit(l, slots.empty() ? rank : slots[static_cast<std::size_t>(rank)]));
    const GroupSpread spread = counts_[l].take();
    if (family.is_kept)
      to[0] += spread.units - 1;
    else
      to[l + 1] += bytes_between(family.pattern, family.bytes,
                                 limit_on(machine_, l, family.most_between_nodes),
                                 family.size_of(group), spread);
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
        bytes[l + 1] += bytes_between(
            family.pattern, family.bytes, limit_on(machine_, l, family.most_between_nodes), size,
            {units, (units - 1) * largest * largest + rest * rest, units - 1});
      }
  return bytes;
}

}  // namespace rankmesh::detail
