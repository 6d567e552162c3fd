// SPDX-License-Identifier: BSD-3-Clause
// Integers with a separate type for each meaning. For example, a world rank cannot be passed as a
// rank in group.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace rankmesh {

/// An integer whose type states its meaning. A plain integer converts to an Index implicitly, but
/// an Index of one meaning never converts to an Index of another meaning. For example, a world rank
/// cannot be passed as a rank in group.
template <class Meaning>
class Index {
 public:
  constexpr Index() = default;
  template <std::integral I>
  constexpr Index(I value)
      : value_{static_cast<std::int64_t>(value)} {}  // implicit, so that literals can be passed

  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  friend constexpr auto operator<=>(const Index&, const Index&) = default;

 private:
  std::int64_t value_ = 0;
};

/// The number of a process in the world. The world is the communicator that the program passes to
/// the mesh.
using Rank = Index<struct RankMeaning>;
/// The number of a process inside one group.
using RankInGroup = Index<struct RankInGroupMeaning>;
/// The position of a process along one dimension.
using Coordinate = Index<struct CoordinateMeaning>;

}  // namespace rankmesh
