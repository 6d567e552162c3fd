// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/group_family.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::vector<Mode> modes_of(const Layout& layout, std::span<const std::size_t> dimensions) {
  std::vector<Mode> modes;
  for (const std::size_t d : dimensions) {
    const auto& dimension = layout.dimensions().at(d);
    modes.push_back({dimension.size, dimension.stride});
  }
  return modes;
}

std::int64_t size_of_modes(std::span<const Mode> modes) {
  std::int64_t size = 1;
  for (const Mode& mode : modes) size *= mode.size;
  return size;
}

// A number that differs for most groups.
std::uint64_t number_of(const RankSet& ranks) {
  std::uint64_t number = 0;
  for (const Rank rank : ranks)
    number = (number + static_cast<std::uint64_t>(rank.value()) + 1) * 0x9e3779b97f4a7c15;
  return number;
}

std::string text_of(std::span<const Mode> modes) {
  std::string text;
  for (const Mode& mode : modes) text += fmt::format(" {}:{}", mode.size, mode.stride);
  return text;
}

}  // namespace

GroupFamily GroupFamily::of(std::string name, const Layout& layout,
                            std::span<const std::size_t> members,
                            std::span<const std::size_t> listing) {
  GroupFamily family;
  family.name_ = std::move(name);
  for (const std::size_t d : members) family.dimensions_.push_back(layout.dimensions().at(d).name);
  const std::vector<Mode> inner = modes_of(layout, members);
  const std::vector<Mode> outer = modes_of(layout, listing);
  std::vector<Mode> both = outer;
  both.insert(both.end(), inner.begin(), inner.end());
  family.group_size_ = size_of_modes(inner);
  family.by_group_size_ = Divider{family.group_size_};
  family.members_ = coalesced(inner);
  family.starts_ = RankSet::strided(layout.offset(), outer);
  family.all_ = RankSet::strided(layout.offset(), both, layout.ranks().table());
  if (family.all_.size() != layout.size())
    throw UsageError{
        fmt::format("the groups of '{}' must name every dimension exactly once", family.name_),
        "list each dimension of the layout either in members or in listing"};
  return family;
}

GroupFamily GroupFamily::of(std::string name, const Layout& layout,
                            std::span<const std::size_t> members) {
  std::vector<std::size_t> inner;
  std::vector<std::size_t> outer;
  for (std::size_t d = 0; d < layout.dimensions().size(); ++d)
    (std::ranges::find(members, d) != members.end() ? inner : outer).push_back(d);
  return of(std::move(name), layout, inner, outer);
}

GroupFamily GroupFamily::ring(std::string name, const Layout& layout, std::size_t dimension) {
  GroupFamily family;
  const auto& d = layout.dimensions().at(dimension);
  std::int64_t weight = 1;
  for (std::size_t i = dimension + 1; i < layout.dimensions().size(); ++i)
    weight *= layout.dimensions()[i].size;
  family.name_ = std::move(name);
  family.dimensions_ = {d.name};
  family.group_size_ = 2;
  family.all_ = layout.ranks();
  family.starts_ = RankSet::strided(layout.offset(), layout.ranks().modes());
  family.ring_ = RingOfPairs{d.size, d.stride, weight};
  return family;
}

RankSet GroupFamily::pair(std::int64_t i) const {
  if (ring_->size == 1) return RankSet::repeated(all_.at(i), 2);
  const bool is_last = i / ring_->weight % ring_->size == ring_->size - 1;
  const Mode step{2, is_last ? -(ring_->size - 1) * ring_->stride : ring_->stride};
  return RankSet::strided(starts_.at(i).value(), {&step, 1}, all_.table());
}

std::vector<GroupIndex> GroupFamily::find_pairs(Rank rank) const {
  const auto index = all_.index_of(rank);
  if (!index) return {};
  const std::int64_t i = index->value();
  const bool is_first = i / ring_->weight % ring_->size == 0;
  const std::int64_t before = is_first ? i + (ring_->size - 1) * ring_->weight : i - ring_->weight;
  if (before == i) return {{i, RankInGroup{0}}, {i, RankInGroup{1}}};
  const GroupIndex own{i, RankInGroup{0}};
  const GroupIndex other{before, RankInGroup{1}};
  return i < before ? std::vector{own, other} : std::vector{other, own};
}

GroupFamily GroupFamily::of(std::string name, std::vector<RankSet> groups) {
  GroupFamily family;
  family.name_ = std::move(name);
  auto lists = std::make_shared<Explicit>();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].empty())
      throw SpecError{fmt::format("group {} of '{}' is empty", g, family.name_),
                      "remove the empty group"};
    family.group_size_ = std::max(family.group_size_, groups[g].size());
    std::int64_t k = 0;
    for (const Rank rank : groups[g])
      lists->places.push_back({rank.value(), {static_cast<std::int64_t>(g), RankInGroup{k++}}});
    lists->by_ranks.emplace_back(number_of(groups[g]), static_cast<std::int64_t>(g));
  }
  std::ranges::sort(lists->by_ranks);
  for (const RankSet& group : groups) family.uniform_ &= group.size() == family.group_size_;
  std::ranges::stable_sort(lists->places, {}, [](const auto& p) { return p.first; });
  lists->groups = std::move(groups);
  family.explicit_ = std::move(lists);
  return family;
}

std::int64_t GroupFamily::group_count() const {
  return explicit_ ? std::ssize(explicit_->groups) : starts_.size();
}

RankSet GroupFamily::group(std::int64_t i) const {
  if (i < 0 || i >= group_count())
    throw UsageError{
        fmt::format("group {} is out of range: '{}' has {} groups", i, name_, group_count()),
        "groups are numbered from 0"};
  if (explicit_) return explicit_->groups.at(static_cast<std::size_t>(i));
  if (ring_) return pair(i);
  return RankSet::strided(starts_.at(i).value(), members_, all_.table());
}

std::optional<GroupIndex> GroupFamily::find(Rank rank) const {
  if (explicit_ || ring_) {
    const auto places = find_all(rank);
    if (places.empty()) return std::nullopt;
    return places.front();
  }
  const std::int64_t index = all_.find(rank);
  if (index < 0) return std::nullopt;
  const std::int64_t group = by_group_size_.quotient(index);
  return GroupIndex{group, RankInGroup{index - group * group_size_}};
}

std::vector<GroupIndex> GroupFamily::find_all(Rank rank) const {
  std::vector<GroupIndex> result;
  if (explicit_) {
    const auto [first, last] = std::ranges::equal_range(explicit_->places, rank.value(), {},
                                                        [](const auto& p) { return p.first; });
    for (auto place = first; place != last; ++place) result.push_back(place->second);
  } else if (ring_) {
    return find_pairs(rank);
  } else if (const auto place = find(rank)) {
    result.push_back(*place);
  }
  return result;
}

std::optional<std::int64_t> GroupFamily::find_group(const RankSet& ranks) const {
  if (ranks.empty()) return std::nullopt;
  if (explicit_) {
    if (ranks.size() > group_size_) return std::nullopt;  // the ranks may be too many to visit
    for (const auto& [number, g] :
         std::ranges::equal_range(explicit_->by_ranks, number_of(ranks), {},
                                  [](const auto& entry) { return entry.first; }))
      if (group(g) == ranks) return g;
    return std::nullopt;
  }
  for (const GroupIndex& place : find_all(ranks.front()))
    if (place.rank_in_group == RankInGroup{0} && group(place.group) == ranks) return place.group;
  return std::nullopt;
}

Rank GroupFamily::highest() const {
  if (explicit_ == nullptr) return all_.highest();
  return explicit_->places.empty() ? Rank{-1} : Rank{explicit_->places.back().first};
}

Coverage GroupFamily::coverage(std::int64_t world_size) const {
  if (ring_) return Coverage::overlapping;
  if (!explicit_) return all_.size() == world_size ? Coverage::partition : Coverage::partial;
  const auto& places = explicit_->places;
  const auto twice = std::ranges::adjacent_find(places, {}, [](const auto& p) { return p.first; });
  if (twice != places.end()) return Coverage::overlapping;
  return std::ssize(places) == world_size ? Coverage::partition : Coverage::partial;
}

std::optional<std::int64_t> GroupFamily::stride() const {
  if (explicit_ || ring_ || all_.table() || members_.size() != 1) return std::nullopt;
  return members_.front().stride;
}

// Equal member modes on the same ranks make all groups equal. The reason: the lowest of the ranks
// is the lowest rank of its group, and the modes say which ranks are in a group with a given lowest
// rank. Without this group, the same holds for the lowest of the ranks that are left, and so on.
bool GroupFamily::has_same_groups(const GroupFamily& other) const {
  return is_strided() && other.is_strided() && members_ == other.members_ &&
         all_.has_same_ranks(other.all_);
}

std::string GroupFamily::canonical() const {
  const std::string table =
      !explicit_ && all_.table() ? fmt::format(" table {}", to_string(all_.table()->hash())) : "";
  if (ring_)
    return fmt::format("{} ring {}:{} start {} ranks{} step {}{}", name_, ring_->size,
                       ring_->stride, starts_.start(), text_of(starts_.modes()), ring_->weight,
                       table);
  if (!explicit_)
    return fmt::format("{} size {} start {} groups{} members{}{}", name_, group_size_,
                       starts_.start(), text_of(starts_.modes()), text_of(members_), table);
  std::string text = fmt::format("{} lists", name_);
  for (const RankSet& group : explicit_->groups) {
    text += ' ';
    text += group.to_string();
    text += ';';
  }
  return text;
}

}  // namespace rankmesh
