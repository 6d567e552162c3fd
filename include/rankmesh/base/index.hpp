// Indices that must not be mistaken for one another.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace rankmesh {

/// A whole number with a meaning. Literals convert in; one meaning never converts to another, so
/// that a world rank cannot be passed where a rank in group is wanted.
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

/// A process's number in the world: the communicator that the user handed in.
using Rank = Index<struct RankMeaning>;
/// A process's number inside one group.
using RankInGroup = Index<struct RankInGroupMeaning>;
/// A process's place along one dimension.
using Coordinate = Index<struct CoordinateMeaning>;

}  // namespace rankmesh
