// SPDX-License-Identifier: BSD-3-Clause
// The best assignment of ranks to slots, found by trying all of them up to the symmetries of the
// machine's tree. A partial assignment is given up when it sends more than the best one: further
// ranks never lower the bytes. The bytes are added up here once more, independently of the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rankmesh/place/traffic.hpp"

namespace rankmesh_test {

/// Returns the bytes that leave the units of each level.
inline std::vector<std::int64_t> counted_bytes(const rankmesh::MeshPlan& plan,
                                               const rankmesh::Machine& machine,
                                               const std::vector<rankmesh::FamilyTraffic>& traffic,
                                               const std::vector<std::int64_t>& slots) {
  using rankmesh::Pattern;
  std::vector<std::int64_t> bytes(machine.levels().size());
  for (const auto& t : traffic) {
    const auto& family = plan.groups(t.name);
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const auto ranks = family.group(g).to_vector();
      const auto k = static_cast<std::int64_t>(ranks.size());
      for (std::size_t l = 0; l < bytes.size(); ++l) {
        std::vector<std::int64_t> units;
        for (const auto rank : ranks) units.push_back(machine.unit(l, slots[rank.to_size()]));
        const auto distinct =
            static_cast<std::int64_t>(std::set<std::int64_t>{units.begin(), units.end()}.size());
        std::int64_t pairs = 0;
        std::int64_t neighbours = 0;
        for (std::size_t a = 0; a < units.size(); ++a) {
          for (const std::int64_t other : units) pairs += units[a] != other;
          neighbours += a > 0 && units[a] != units[a - 1];
        }
        if (distinct == 1) continue;
        if (t.pattern == Pattern::ring) bytes[l] += distinct * t.bytes;
        if (t.pattern == Pattern::tree) bytes[l] += (distinct - 1) * (t.bytes * k / (k - 1));
        if (t.pattern == Pattern::all_to_all) bytes[l] += pairs * t.bytes / (k - 1);
        if (t.pattern == Pattern::chain) bytes[l] += 2 * neighbours * t.bytes;
      }
    }
  }
  return bytes;
}

class BruteForce {
 public:
  BruteForce(const rankmesh::MeshPlan& plan, const rankmesh::Machine& machine,
             const std::vector<rankmesh::FamilyTraffic>& traffic)
      : machine_{machine} {
    const std::size_t inner = machine.levels().size() - 1;
    for (std::int64_t s = 0; s < machine.slot_count(); ++s) {
      const auto unit = static_cast<std::size_t>(machine.unit(inner, s));
      if (unit >= free_.size()) free_.resize(unit + 1);
      free_[unit].push_back(s);
    }
    for (std::size_t l = 0; l <= inner; ++l) {
      used_.emplace_back(static_cast<std::size_t>(machine.unit_count(l)));
      for (std::int64_t u = 0; u < machine.unit_count(l); ++u) shapes_[{l, u}] = shape(l, u);
    }
    slots_.resize(static_cast<std::size_t>(machine.slot_count()), -1);
    for (const auto& t : traffic)
      for (std::int64_t g = 0; g < plan.groups(t.name).group_count(); ++g) {
        groups_.push_back({t.pattern, t.bytes, {}});
        for (const auto rank : plan.groups(t.name).group(g))
          groups_.back().ranks.push_back(rank.to_size());
      }
    for (std::size_t l = 0; l <= inner; ++l) {
      units_.emplace_back();
      for (std::int64_t slot = 0; slot < machine.slot_count(); ++slot)
        units_[l].push_back(static_cast<int>(machine.unit(l, slot)));
    }
  }

  // @param known  the bytes of some assignment, which bound the search.
  std::vector<std::int64_t> best(std::vector<std::int64_t> known) {
    best_ = std::move(known);
    place(0);
    return best_;
  }

 private:
  struct Group {
    rankmesh::Pattern pattern;
    std::int64_t bytes;
    std::vector<std::size_t> ranks;
  };

  // The bytes of the ranks that have a slot.
  std::vector<std::int64_t> partial_bytes() const {
    using rankmesh::Pattern;
    std::vector<std::int64_t> bytes(units_.size());
    int counts[16];
    for (const Group& group : groups_) {
      const auto k = static_cast<std::int64_t>(group.ranks.size());
      for (std::size_t l = 0; l < units_.size(); ++l) {
        for (int& count : counts) count = 0;
        const int* units = units_[l].data();
        std::int64_t distinct = 0, pairs = 0, placed = 0, neighbours = 0;
        int last = -1;
        for (const std::size_t rank : group.ranks) {
          const int unit = slots_[rank] < 0 ? -1 : units[slots_[rank]];
          neighbours += last >= 0 && unit >= 0 && unit != last;
          last = unit;
          if (unit < 0) continue;
          distinct += counts[unit] == 0;
          pairs += 2 * (placed - counts[unit]);
          ++counts[unit];
          ++placed;
        }
        if (distinct < 2) continue;
        if (group.pattern == Pattern::ring) bytes[l] += distinct * group.bytes;
        if (group.pattern == Pattern::tree)
          bytes[l] += (distinct - 1) * (group.bytes * k / (k - 1));
        if (group.pattern == Pattern::all_to_all) bytes[l] += pairs * group.bytes / (k - 1);
        if (group.pattern == Pattern::chain) bytes[l] += 2 * neighbours * group.bytes;
      }
    }
    return bytes;
  }

  std::int64_t first_slot(std::size_t level, std::int64_t unit) const {
    std::int64_t s = 0;
    while (machine_.unit(level, s) != unit) ++s;
    return s;
  }

  // The sizes of all units inside a unit.
  std::string shape(std::size_t level, std::int64_t unit) const {
    if (level + 1 == machine_.levels().size()) {
      std::int64_t size = 0;
      for (std::int64_t s = 0; s < machine_.slot_count(); ++s)
        size += machine_.unit(level, s) == unit;
      return std::to_string(size);
    }
    std::set<std::int64_t> inner;
    for (std::int64_t s = 0; s < machine_.slot_count(); ++s)
      if (machine_.unit(level, s) == unit) inner.insert(machine_.unit(level + 1, s));
    std::vector<std::string> shapes;
    for (const std::int64_t i : inner) shapes.push_back(shape(level + 1, i));
    std::ranges::sort(shapes);
    std::string text = "(";
    for (const std::string& s : shapes) text += s + " ";
    return text + ")";
  }

  // Of equal empty units in the same unit, only the first is filled.
  bool is_first_choice(std::int64_t slot) const {
    for (std::size_t l = 0; l < machine_.levels().size(); ++l) {
      const std::int64_t unit = machine_.unit(l, slot);
      if (used_[l][static_cast<std::size_t>(unit)] > 0) continue;
      for (std::int64_t other = 0; other < unit; ++other) {
        if (used_[l][static_cast<std::size_t>(other)] > 0) continue;
        const std::int64_t s = first_slot(l, other);
        if ((l == 0 || machine_.unit(l - 1, s) == machine_.unit(l - 1, slot)) &&
            shapes_.at({l, other}) == shapes_.at({l, unit}))
          return false;
      }
    }
    return true;
  }

  void place(std::size_t rank) {
    auto bytes = partial_bytes();
    if (bytes >= best_) return;
    if (rank == slots_.size()) {
      best_ = std::move(bytes);
      return;
    }
    for (auto& free : free_) {
      if (free.empty() || !is_first_choice(free.back())) continue;
      const std::int64_t slot = free.back();
      free.pop_back();
      for (std::size_t l = 0; l < used_.size(); ++l)
        ++used_[l][static_cast<std::size_t>(machine_.unit(l, slot))];
      slots_[rank] = slot;
      place(rank + 1);
      slots_[rank] = -1;
      for (std::size_t l = 0; l < used_.size(); ++l)
        --used_[l][static_cast<std::size_t>(machine_.unit(l, slot))];
      free.push_back(slot);
    }
  }

  const rankmesh::Machine& machine_;
  std::vector<Group> groups_;
  std::vector<std::vector<int>> units_;  // [level][slot]
  std::vector<std::vector<std::int64_t>> free_, used_;
  std::map<std::pair<std::size_t, std::int64_t>, std::string> shapes_;
  std::vector<std::int64_t> slots_, best_;
};

}  // namespace rankmesh_test
