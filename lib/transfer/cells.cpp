// SPDX-License-Identifier: BSD-3-Clause
#include "detail/cells.hpp"

#include <algorithm>

namespace rankmesh::detail {
namespace {

// Repeats the positions along a dimension.
void spread(std::vector<std::int64_t>& positions, const Layout::Dimension& dimension) {
  const std::size_t count = positions.size();
  for (std::int64_t c = 1; c < dimension.size; ++c)
    for (std::size_t i = 0; i < count; ++i)
      positions.push_back(positions[i] + c * dimension.stride);
}

}  // namespace

CellRanks::CellRanks(const TensorPlacement::Data& place) : place_{place} {
  std::vector<bool> is_mentioned(place.layout.dimensions().size(), false);
  for (const AxisShares& axis : place.shares)
    for (const std::size_t d : axis.dimensions) is_mentioned[d] = true;
  for (const std::size_t d : place.sum_dimensions) {
    is_mentioned[d] = true;
    sums_.push_back(place.layout.dimensions()[d]);
    sum_count_ *= sums_.back().size;
  }
  for (std::size_t d = 0; d < is_mentioned.size(); ++d)
    if (!is_mentioned[d]) replicas_.push_back(place.layout.dimensions()[d]);
}

std::vector<Rank> CellRanks::of(const Classes& cell, std::int64_t sum) const {
  std::int64_t start = place_.layout.offset();
  for (std::size_t d = sums_.size(); d-- > 0;) {
    start += sum % sums_[d].size * sums_[d].stride;
    sum /= sums_[d].size;
  }
  return ranks(cell, start);
}

std::vector<Rank> CellRanks::of_all_sums(const Classes& cell) const {
  std::vector<Rank> all;
  for (std::int64_t sum = 0; sum < sum_count_; ++sum) {
    const auto some = of(cell, sum);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::ranges::sort(all);
  return all;
}

std::int64_t CellRanks::replica_count() const {
  std::int64_t count = 1;
  for (const Layout::Dimension& dimension : replicas_) count *= dimension.size;
  return count;
}

std::int64_t CellRanks::sum_of(Rank rank) const {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < sums_.size(); ++d)
    sum = sum * sums_[d].size +
          place_.layout.coordinate(rank, place_.sum_dimensions[d]).value_or(0).value();
  return sum;
}

std::vector<Rank> CellRanks::ranks(const Classes& cell, std::int64_t start) const {
  std::vector<std::int64_t> positions{start};
  for (std::size_t a = 0; a < cell.size(); ++a) {
    const AxisShares& axis = place_.shares[a];
    const auto& shares = axis.classes[static_cast<std::size_t>(cell[a])].shares;
    const std::size_t count = positions.size();
    // The first share moves the positions; each further share adds the same number of positions.
    std::int64_t first = 0;
    for (std::size_t s = 0; s < shares.size(); ++s) {
      std::int64_t moved = 0;
      for (std::size_t d = 0; d < axis.dimensions.size(); ++d)
        moved += axis.coordinate(shares[s], d, place_.layout) *
                 place_.layout.dimensions()[axis.dimensions[d]].stride;
      if (s == 0) first = moved;
      for (std::size_t i = 0; i < count; ++i) {
        if (s == 0)
          positions[i] += moved;
        else
          positions.push_back(positions[i] + moved - first);
      }
    }
  }
  for (const Layout::Dimension& dimension : replicas_) spread(positions, dimension);
  const auto& table = place_.layout.ranks().table();
  std::vector<Rank> result;
  result.reserve(positions.size());
  for (const std::int64_t position : positions)
    result.emplace_back(table ? table->rank_at(position) : position);
  std::ranges::sort(result);
  return result;
}

}  // namespace rankmesh::detail
