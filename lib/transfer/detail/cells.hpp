// SPDX-License-Identifier: BSD-3-Clause
// Cells: elements that exactly the same ranks have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "transfer/detail/placement_data.hpp"

namespace rankmesh::detail {

/// One class of each axis.
using Classes = std::vector<std::int64_t>;

/// Finds the ranks of cells.
class CellRanks {
 public:
  explicit CellRanks(const TensorPlacement::Data& place);

  /// Returns the number of combinations of coordinates along the dimensions of partial sums; 1
  /// without sums.
  [[nodiscard]] std::int64_t sum_count() const { return sum_count_; }
  /// Returns the ranks that have the elements, in ascending order.
  /// @param sum  which of the partial sums.
  [[nodiscard]] std::vector<Rank> of(const Classes& cell, std::int64_t sum) const;
  /// Returns the ranks that have the elements or partial sums of them, in ascending order.
  [[nodiscard]] std::vector<Rank> of_all_sums(const Classes& cell) const;
  /// Returns the number of ranks that have the same shares of all axes, and the same partial sums.
  [[nodiscard]] std::int64_t replica_count() const;
  /// Returns which of the partial sums a rank of the mesh has.
  [[nodiscard]] std::int64_t sum_of(Rank rank) const;

 private:
  [[nodiscard]] std::vector<Rank> ranks(const Classes& cell, std::int64_t start) const;

  const TensorPlacement::Data& place_;
  std::vector<Layout::Dimension> replicas_;  // the dimensions that are not mentioned
  std::vector<Layout::Dimension> sums_;
  std::int64_t sum_count_ = 1;
};

/// Calls `take(tuple)` for each combination of one entry of each list. The last list varies
/// fastest. Without lists, there is one empty combination.
template <class T, class Take>
void for_each_combination(const std::vector<std::vector<T>>& lists, Take&& take) {
  std::vector<T> tuple;
  for (const auto& list : lists) {
    if (list.empty()) return;
    tuple.push_back(list.front());
  }
  std::vector<std::size_t> chosen(lists.size(), 0);
  for (;;) {
    take(tuple);
    std::size_t i = lists.size();
    while (i > 0 && ++chosen[i - 1] == lists[i - 1].size()) {
      chosen[--i] = 0;
      tuple[i] = lists[i].front();
    }
    if (i == 0) return;
    tuple[i - 1] = lists[i - 1][chosen[i - 1]];
  }
}

/// Calls `take(cell)` for each cell of a place.
template <class Take>
void for_each_cell_of(const TensorPlacement::Data& place, Take&& take) {
  std::vector<Classes> all;
  for (const AxisShares& axis : place.shares) {
    all.emplace_back(axis.classes.size());
    std::iota(all.back().begin(), all.back().end(), std::int64_t{0});
  }
  for_each_combination(all, take);
}
/// Does so for the cells that a rank has.
template <class Take>
void for_each_cell_of(const TensorPlacement::Data& place, Rank rank, Take&& take) {
  std::vector<std::int64_t> shares;
  if (!place.shares_of(rank, shares)) return;
  std::vector<Classes> classes;
  for (std::size_t a = 0; a < shares.size(); ++a)
    classes.push_back(place.shares[a].classes_of[static_cast<std::size_t>(shares[a])]);
  for_each_combination(classes, take);
}

}  // namespace rankmesh::detail
