// SPDX-License-Identifier: BSD-3-Clause
// Whole numbers with a meaning. A world rank can therefore never be passed as a rank in group.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace rankmesh {

/// A whole number with a meaning. An integer converts to an Index, but an Index of one meaning
/// never converts to an Index of another meaning. For example, a world rank cannot be passed as a
/// rank in group.
template <class Meaning>
class Index {
 public:
  constexpr Index() = default;
  template <std::integral I>
  constexpr Index(I value)
      : value_{static_cast<std::int64_t>(value)} {}  // implicit: literals stay readable

  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  friend constexpr auto operator<=>(const Index&, const Index&) = default;

 private:
  std::int64_t value_ = 0;
};

/// The number of a process in the world, which is the communicator that the user passed.
using Rank = Index<struct RankMeaning>;
/// The number of a process inside one group.
using RankInGroup = Index<struct RankInGroupMeaning>;
/// The position of a process along one dimension.
using Coordinate = Index<struct CoordinateMeaning>;

}  // namespace rankmesh
