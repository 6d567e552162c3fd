// SPDX-License-Identifier: BSD-3-Clause
#include "detail/candidates.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/objective.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t most_foldings = 100'000;

}  // namespace

MeshGrid::MeshGrid(const MeshPlan& plan, const Machine& machine) {
  if (plan.views().empty() || plan.views().front().size() != plan.world_size()) return;
  is_whole_ = true;
  node_level_ = machine.node_level();
  const Layout& view = plan.views().front();
  std::vector<std::size_t> used;  // dimensions of size 1 do not matter
  for (std::size_t d = 0; d < view.dimensions().size(); ++d)
    if (view.dimensions()[d].size > 1) {
      dimensions_.push_back({view.dimensions()[d].name, view.dimensions()[d].size});
      used.push_back(d);
    }
  coordinates_.resize(dimensions_.size());
  for (std::int64_t r = 0; r < plan.world_size(); ++r) {
    const auto coordinates = view.coordinates(r);
    for (std::size_t d = 0; d < used.size(); ++d)
      coordinates_[d].push_back((*coordinates)[used[d]].value());
  }
  tree_.resize(static_cast<std::size_t>(machine.slot_count()));
  std::iota(tree_.begin(), tree_.end(), 0);
  std::ranges::stable_sort(tree_, [&](std::int64_t a, std::int64_t b) {
    for (std::size_t l = 0; l < machine.levels().size(); ++l)
      if (machine.unit(l, a) != machine.unit(l, b)) return machine.unit(l, a) < machine.unit(l, b);
    return false;
  });
  std::int64_t units = 1;
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    if (machine.smallest(l) != machine.largest(l)) {
      radices_.clear();
      return;  // no folding fills units of different sizes
    }
    radices_.push_back(machine.unit_count(l) / units);
    units = machine.unit_count(l);
  }
  radices_.push_back(machine.slot_count() / units);
}

void MeshGrid::each_order(std::int64_t most, const Take& take) const {
  std::vector<std::size_t> order(dimensions_.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    if (most-- == 0) return;
    std::vector<std::int64_t> slots(tree_.size());
    std::vector<std::string> names;
    for (const std::size_t d : order) {
      names.push_back(dimensions_[d].name);
      for (std::size_t r = 0; r < slots.size(); ++r)
        slots[r] = slots[r] * dimensions_[d].size + coordinates_[d][r];
    }
    for (std::int64_t& slot : slots) slot = tree_[static_cast<std::size_t>(slot)];
    take(fmt::format("order {}", fmt::join(names, ",")), std::move(slots));
  } while (std::ranges::next_permutation(order).found);
}

// Chooses the factors of one level, dimension by dimension. The product of the remaining factors
// must be `left`.
void MeshGrid::collect(std::size_t level, std::size_t dimension, std::int64_t left,
                       std::vector<std::int64_t>& rest, Folding& folding,
                       std::vector<Folding>& found) const {
  if (found.size() >= most_foldings) return;
  if (level == radices_.size()) {
    found.push_back(folding);
    return;
  }
  if (dimension == dimensions_.size()) {
    if (left == 1)
      collect(level + 1, 0, level + 1 < radices_.size() ? radices_[level + 1] : 1, rest, folding,
              found);
    return;
  }
  for (std::int64_t factor = 1; factor <= std::min(left, rest[dimension]); ++factor) {
    if (left % factor != 0 || rest[dimension] % factor != 0) continue;
    folding[level][dimension] = factor;
    rest[dimension] /= factor;
    collect(level, dimension + 1, left / factor, rest, folding, found);
    rest[dimension] *= factor;
  }
  folding[level][dimension] = 1;
}

// Computes the bytes of all families along dimensions of the view by arithmetic. In a folding, the
// factors up to a level give the number of units of this level that a group touches, and each of
// these units has the same number of ranks of the group.
std::vector<std::int64_t> MeshGrid::score(const Folding& folding, const MeshPlan& plan,
                                          std::span<const FamilyTraffic> traffic) const {
  std::vector<std::int64_t> bytes(radices_.size() - 1);
  for (const FamilyTraffic& t : traffic) {
    const GroupFamily& family = plan.groups(t.name);
    std::int64_t units = 1;
    for (std::size_t l = 0; l < bytes.size(); ++l) {
      for (std::size_t d = 0; d < dimensions_.size(); ++d)
        if (std::ranges::find(family.dimensions(), dimensions_[d].name) !=
            family.dimensions().end())
          units *= folding[l][d];
      const std::int64_t size = family.group_size();
      const std::int64_t inside = size / std::min(units, size);
      bytes[l] += family.group_count() *
                  bytes_between(t.pattern, t.bytes, l <= node_level_ ? t.most_between_nodes : 0,
                                size, {units, units * inside * inside, units - 1});
    }
  }
  return bytes;
}

std::vector<std::int64_t> MeshGrid::slots_of(const Folding& folding) const {
  // The factors of a dimension are the digits of its coordinate, the outermost first.
  std::vector<std::int64_t> slots(tree_.size());
  std::vector<std::int64_t> weight(dimensions_.size(), 1);
  for (std::size_t d = 0; d < dimensions_.size(); ++d) weight[d] = dimensions_[d].size;
  for (const auto& factors : folding)
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      weight[d] /= factors[d];
      for (std::size_t r = 0; r < slots.size(); ++r)
        slots[r] = slots[r] * factors[d] + coordinates_[d][r] / weight[d] % factors[d];
    }
  for (std::int64_t& slot : slots) slot = tree_[static_cast<std::size_t>(slot)];
  return slots;
}

std::string MeshGrid::text_of(const Folding& folding) const {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    std::vector<std::int64_t> factors;
    for (const auto& level : folding) factors.push_back(level[d]);
    parts.push_back(fmt::format("{} {}", dimensions_[d].name, fmt::join(factors, "*")));
  }
  return fmt::format("folded: {}", fmt::join(parts, ", "));
}

void MeshGrid::each_folding(const MeshPlan& plan, std::span<const FamilyTraffic> traffic,
                            std::size_t most, const Take& take) const {
  if (radices_.empty()) return;
  std::vector<std::int64_t> rest;
  for (const Dimension& dimension : dimensions_) rest.push_back(dimension.size);
  Folding folding(radices_.size(), std::vector<std::int64_t>(dimensions_.size(), 1));
  std::vector<Folding> found;
  collect(0, 0, radices_.front(), rest, folding, found);
  std::vector<std::pair<std::vector<std::int64_t>, std::size_t>> scores;
  for (std::size_t f = 0; f < found.size(); ++f)
    scores.emplace_back(score(found[f], plan, traffic), f);
  const std::size_t count = std::min(most, scores.size());
  std::ranges::partial_sort(scores, scores.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t f = 0; f < count; ++f)
    take(text_of(found[scores[f].second]), slots_of(found[scores[f].second]));
}

}  // namespace rankmesh::detail
