// SPDX-License-Identifier: BSD-3-Clause
#include "place/diff.hpp"

#include <algorithm>

#include "rankmesh/base/hash.hpp"

namespace rankmesh {
namespace {

constexpr std::int64_t most_compared = std::int64_t{1} << 22;

bool is_plain_partition(const GroupFamily& family, std::int64_t world) {
  return family.is_strided() && family.group(0).table() == nullptr &&
         family.coverage(world) == Coverage::partition;
}

bool is_small(const GroupFamily& family) {
  return family.group_count() <= most_compared / std::max<std::int64_t>(1, family.group_size());
}

Hash128 hash_of(const RankSet& ranks, bool is_ordered) {
  std::vector<Rank> list = ranks.to_vector();
  if (!is_ordered) std::ranges::sort(list);
  return hash_bytes({reinterpret_cast<const char*>(list.data()), list.size() * sizeof(Rank)});
}

// Returns one hash per group, in listing order.
std::vector<Hash128> hashes(const GroupFamily& family, bool is_ordered) {
  std::vector<Hash128> result;
  result.reserve(static_cast<std::size_t>(family.group_count()));
  for (std::int64_t g = 0; g < family.group_count(); ++g)
    result.push_back(hash_of(family.group(g), is_ordered));
  return result;
}

std::vector<Hash128> sorted(std::vector<Hash128> list) {
  std::ranges::sort(list);
  return list;
}

// By rank: whether its group changed in any family.
using Changed = std::vector<bool>;

// Marks the ranks of groups that the other plan does not have.
void mark_lost(const GroupFamily& family, const std::vector<Hash128>& own,
               const std::vector<Hash128>& other, Changed& changed) {
  for (std::size_t g = 0; g < own.size(); ++g)
    if (!std::ranges::binary_search(other, own[g]))
      for (const Rank rank : family.group(static_cast<std::int64_t>(g)))
        changed[static_cast<std::size_t>(rank.value())] = true;
}

class Comparison {
 public:
  Comparison(const MeshPlan& a, const MeshPlan& b)
      : a_{a}, b_{b}, world_{std::max(a.world_size(), b.world_size())} {
    if (world_ <= most_compared) changed_.resize(static_cast<std::size_t>(world_));
  }

  PlanDiff run() {
    PlanDiff result{a_.world_size(), b_.world_size(), {}, std::nullopt};
    for (const GroupFamily& family : a_.families()) {
      NameDiff entry{family.name(), NameChange::only_a, family.group_count(), 0, {}, {}, {}};
      const auto other = std::ranges::find(b_.families(), family.name(), &GroupFamily::name);
      if (other != b_.families().end()) compare(family, *other, entry);
      if (entry.change == NameChange::groups || entry.change == NameChange::only_a)
        entry.found_as = found_in(b_, family);
      result.names.push_back(std::move(entry));
    }
    for (const GroupFamily& family : b_.families())
      if (std::ranges::find(a_.families(), family.name(), &GroupFamily::name) ==
          a_.families().end())
        result.names.push_back({family.name(),
                                NameChange::only_b,
                                0,
                                family.group_count(),
                                {},
                                {},
                                found_in(a_, family)});
    result.changed_ranks = total();
    return result;
  }

 private:
  [[nodiscard]] bool is_arithmetic(const GroupFamily& a, const GroupFamily& b) const {
    return a_.world_size() == b_.world_size() && is_plain_partition(a, world_) &&
           is_plain_partition(b, world_);
  }

  void compare(const GroupFamily& a, const GroupFamily& b, NameDiff& entry) {
    entry.groups_b = b.group_count();
    entry.surviving = entry.groups_a;
    entry.changed_ranks = 0;
    if (a.canonical() == b.canonical()) {
      entry.change = NameChange::same;
    } else if (is_arithmetic(a, b)) {
      entry.change = NameChange::listing;
      if (a.has_same_groups(b)) return;
      entry.change = NameChange::order;
      if (a.group(0).ascending_modes() == b.group(0).ascending_modes()) return;
      entry.change = NameChange::groups;  // such families have no common group
      entry.surviving = 0;
      entry.changed_ranks = world_;
      all_changed_ = true;
    } else if (is_small(a) && is_small(b) && !changed_.empty()) {
      enumerate(a, b, entry);
    } else {
      entry.change = NameChange::groups;
      entry.surviving.reset();
      entry.changed_ranks.reset();
      some_unknown_ = true;
    }
  }

  void enumerate(const GroupFamily& a, const GroupFamily& b, NameDiff& entry) {
    const auto in_order_a = hashes(a, true);
    const auto in_order_b = hashes(b, true);
    entry.change = NameChange::same;
    if (in_order_a == in_order_b) return;
    entry.change = NameChange::listing;
    if (sorted(in_order_a) == sorted(in_order_b)) return;
    entry.change = NameChange::order;
    const auto own_a = hashes(a, false);
    const auto own_b = hashes(b, false);
    const auto set_a = sorted(own_a);
    const auto set_b = sorted(own_b);
    if (set_a == set_b) return;
    entry.change = NameChange::groups;
    entry.surviving = std::ranges::count_if(
        own_a, [&](const Hash128& group) { return std::ranges::binary_search(set_b, group); });
    Changed changed(changed_.size());
    mark_lost(a, own_a, set_b, changed);
    mark_lost(b, own_b, set_a, changed);
    entry.changed_ranks = std::ranges::count(changed, true);
    for (std::size_t rank = 0; rank < changed.size(); ++rank)
      if (changed[rank]) changed_[rank] = true;
  }

  // Returns the families of a plan that have exactly the groups of this family.
  [[nodiscard]] std::vector<std::string> found_in(const MeshPlan& plan,
                                                  const GroupFamily& family) const {
    std::vector<std::string> names;
    for (const GroupFamily& other : plan.families()) {
      if (other.group_count() != family.group_count() || other.group_size() != family.group_size())
        continue;
      const bool is_same =
          is_arithmetic(family, other)
              ? family.group(0).ascending_modes() == other.group(0).ascending_modes()
              : is_small(family) && is_small(other) &&
                    sorted(hashes(family, false)) == sorted(hashes(other, false));
      if (is_same) names.push_back(other.name());
    }
    return names;
  }

  [[nodiscard]] std::optional<std::int64_t> total() const {
    if (all_changed_) return world_;
    if (some_unknown_) return std::nullopt;
    return std::ranges::count(changed_, true);
  }

  const MeshPlan& a_;
  const MeshPlan& b_;
  std::int64_t world_;
  Changed changed_;  // empty if the world is too large to visit every rank
  bool all_changed_ = false;
  bool some_unknown_ = false;
};

}  // namespace

bool PlanDiff::is_empty() const {
  return world_a == world_b && std::ranges::all_of(names, [](const NameDiff& name) {
           return name.change == NameChange::same;
         });
}

PlanDiff diff(const MeshPlan& a, const MeshPlan& b) { return Comparison{a, b}.run(); }

}  // namespace rankmesh
