// SPDX-License-Identifier: BSD-3-Clause
// Assigns the coordinates of a new mesh to ranks so that as many bytes as possible stay in place.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The number of bytes that a coordinate of the new mesh needs and that a rank already holds. With
/// weights, it is the number of weighted bytes that need not move if the rank takes the coordinate.
struct HeldBytes {
  std::int64_t coordinate = 0;  ///< The number of the coordinate.
  std::int64_t rank = 0;        ///< The rank.
  std::int64_t bytes = 0;       ///< The bytes, at least 0. They are added up over equal pairs.
};

/// An assignment of coordinates to ranks.
struct Assignment {
  std::vector<std::int64_t> rank_of;  ///< The rank of each coordinate; no rank occurs twice.
  std::int64_t kept = 0;              ///< The bytes that stay in place.
  /// No assignment keeps more bytes than this. It is the value of a solution of the dual problem.
  std::int64_t bound = 0;
  /// What is known of it: `exact` if no assignment keeps more, otherwise `auction`.
  std::string_view how;
  /// Returns an upper bound of the additional bytes that a better assignment could keep.
  [[nodiscard]] std::int64_t gap() const { return bound - kept; }
};

/// Assigns each coordinate to a rank of its own so that the sum of the kept bytes is as large as
/// possible, by an auction (Bertsekas). The result is optimal, and gap() is 0, unless the greatest
/// number of bytes times the number of ranks exceeds 2^60, or the auction is stopped because it
/// takes too long. Local. The result depends only on the arguments.
/// @param coordinates  The number of coordinates, at most `ranks`.
/// @param held  Pairs that are not listed hold 0 bytes.
/// @throws UsageError if there are more coordinates than ranks, if a number is out of range, or if
/// all bytes together exceed 2^62.
[[nodiscard]] RANKMESH_API Assignment assign_ranks(std::int64_t coordinates, std::int64_t ranks,
                                                   std::span<const HeldBytes> held);

}  // namespace rankmesh
