// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/rank_map.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::int64_t checked(std::int64_t start, std::int64_t step, std::int64_t factor) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(step, factor, &result) ||
      __builtin_add_overflow(start, result, &result))
    throw SpecError{"the ranks of the mesh overflow 64 bits", "use smaller ranks"};
  return result;
}

}  // namespace

std::int64_t RankMap::Positions::at(std::int64_t position) const {
  return checked(start, step, position);
}
std::int64_t RankMap::Positions::stride(std::int64_t stride) const {
  return checked(0, step, stride);
}

RankMap::RankMap(RankSet ranks)
    : ranks_{std::move(ranks)},
      is_stepped_{ranks_.table() == nullptr && ranks_.modes().size() <= 1} {
  if (!is_stepped_ && ranks_.size() > max_table)
    throw SpecError{
        fmt::format("{} ranks without a constant step need a table, which holds at most {} ranks",
                    ranks_.size(), max_table),
        "use fewer ranks, or ranks with a constant step"};
}

std::shared_ptr<const RankTable> RankMap::composed(const std::shared_ptr<const RankTable>& inner) {
  auto& table = tables_[inner];
  if (table != nullptr) return table;
  const bool is_whole =
      ranks_.start() == 0 && ranks_.modes() == std::vector{Mode{ranks_.size(), 1}};
  if (inner == nullptr && is_whole && ranks_.table() != nullptr &&
      ranks_.table()->size() == ranks_.size())
    return table = ranks_.table();
  std::vector<std::int64_t> list;
  if (inner == nullptr)
    for (const Rank rank : ranks_) list.push_back(rank.value());
  else
    for (const std::int64_t rank : inner->ranks()) list.push_back(ranks_.at(rank).value());
  return table = RankTable::make(std::move(list));
}

RankMap::Positions RankMap::positions(const RankSet& set) {
  if (set.highest().value() >= ranks_.size())
    throw UsageError{fmt::format("rank {} is out of range: the map has {} ranks",
                                 set.highest().value(), ranks_.size()),
                     "ranks of the mesh are numbered from 0"};
  if (is_stepped_ && set.table() == nullptr)
    return {ranks_.start(), ranks_.modes().empty() ? 1 : ranks_.modes().front().stride, nullptr};
  return {0, 1, composed(set.table())};
}

RankSet RankMap::map(const RankSet& set) {
  if (set.empty()) return set;
  const Positions to = positions(set);
  std::vector<Mode> modes = set.modes();
  for (Mode& mode : modes) mode.stride = to.stride(mode.stride);
  return RankSet::strided(to.at(set.start()), modes, to.table);
}

Layout RankMap::map(const Layout& layout, std::string_view prefix) {
  const Positions to = positions(layout.ranks());
  std::vector<Layout::Dimension> dimensions = layout.dimensions();
  for (auto& d : dimensions) d = {std::string{prefix} + d.name, d.size, to.stride(d.stride)};
  return {std::move(dimensions), to.at(layout.offset()), to.table};
}

GroupFamily RankMap::map(const GroupFamily& family, std::string_view prefix) {
  GroupFamily result = family;
  result.name_ = std::string{prefix} + family.name_;
  for (std::string& dimension : result.dimensions_) dimension.insert(0, prefix);
  if (family.explicit_) {
    std::vector<RankSet> groups;
    for (const RankSet& group : family.explicit_->groups) {
      // Each list gets its own table: a composed table would hold all ranks of the mesh.
      std::vector<Rank> ranks;
      for (const Rank rank : group) ranks.push_back(ranks_.at(rank.value()));
      groups.push_back(RankSet::of(ranks));
    }
    const auto lists = GroupFamily::of(result.name_, std::move(groups));
    result.explicit_ = lists.explicit_;
    return result;
  }
  const Positions to = positions(family.all_);
  result.all_ = map(family.all_);
  std::vector<Mode> starts = family.starts_.modes();
  for (Mode& mode : starts) mode.stride = to.stride(mode.stride);
  result.starts_ = RankSet::strided(to.at(family.starts_.start()), starts);
  for (Mode& mode : result.members_) mode.stride = to.stride(mode.stride);
  if (result.ring_) result.ring_->stride = to.stride(result.ring_->stride);
  return result;
}

}  // namespace rankmesh
