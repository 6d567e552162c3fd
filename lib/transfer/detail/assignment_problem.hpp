// SPDX-License-Identifier: BSD-3-Clause
// The assignment problem, and the functions that solve it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rankmesh::detail {

/// The bytes that ranks hold for one coordinate: pairs of a rank and bytes, in the order of the
/// ranks.
using HeldList = std::vector<std::pair<std::size_t, std::int64_t>>;

/// Equal coordinates and equal ranks, merged into classes. Both sides have the same number of
/// members in total.
struct ClassProblem {
  std::vector<std::int64_t> supply;    ///< The number of coordinates of each class.
  std::vector<std::int64_t> capacity;  ///< The number of ranks of each class.
  /// The bytes that a rank of a class holds for a coordinate of a class. Row-major: the rows are
  /// the classes of coordinates.
  std::vector<std::int64_t> held;
};

/// The number of coordinates of class `row` that get ranks of class `column`.
struct ClassFlow {
  std::size_t row = 0, column = 0;
  std::int64_t count = 0;
};

/// Returns an assignment of classes that keeps the most bytes.
[[nodiscard]] std::vector<ClassFlow> solve_exactly(const ClassProblem& problem);

/// What the auction has found.
struct AuctionResult {
  std::vector<std::size_t> rank_of;  ///< For each coordinate.
  std::int64_t bound = 0;            ///< See Assignment::bound.
};

/// Returns an assignment that is optimal or close to it.
/// @param held  The list of each coordinate. There are as many ranks as coordinates.
[[nodiscard]] AuctionResult auction(const std::vector<const HeldList*>& held);

}  // namespace rankmesh::detail
