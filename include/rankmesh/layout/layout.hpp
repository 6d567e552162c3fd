// SPDX-License-Identifier: BSD-3-Clause
// Layouts, which convert between ranks and coordinates by the sizes and strides of dimensions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/layout/rank_table.hpp"

namespace rankmesh {

/// One view of a mesh. It consists of dimensions, and each dimension has a name, a size and a
/// stride. The position of a combination of coordinates is `offset` plus the sum of the products
/// coordinate * stride. If the layout has no table, a position is a rank. Otherwise, a position is
/// an index into a table of ranks, which the whole plan shares. A layout is immutable. Its
/// functions are local and do not call MPI.
class RANKMESH_API Layout {
 public:
  /// A dimension. `stride` is the distance between neighbours along the dimension, in positions.
  struct Dimension {
    std::string name;         ///< The name of the dimension.
    std::int64_t size = 1;    ///< The number of coordinates.
    std::int64_t stride = 1;  ///< The distance between the positions of neighbouring coordinates.
    /// Returns whether all fields are equal.
    friend bool operator==(const Dimension&, const Dimension&) = default;
  };

  /// Creates a layout in which the last dimension varies fastest, as in torch and NumPy.
  /// @param sizes  the names and sizes of the dimensions, outermost first.
  /// @param offset  the position of the first rank.
  /// @param table  the rank at each position. Without a table, position p is rank p.
  /// @throws SpecError if the product of the sizes overflows.
  static Layout row_major(std::span<const std::pair<std::string, std::int64_t>> sizes,
                          std::int64_t offset = 0,
                          std::shared_ptr<const RankTable> table = nullptr);

  /// Creates a layout with the given strides. Different combinations of coordinates must have
  /// different positions. Ranks are listed in the order of the dimensions, and the last dimension
  /// varies fastest.
  /// @throws UsageError if two combinations of coordinates have the same position.
  Layout(std::vector<Dimension> dimensions, std::int64_t offset,
         std::shared_ptr<const RankTable> table);

  /// Returns the dimensions, the outermost first.
  [[nodiscard]] const std::vector<Dimension>& dimensions() const { return dimensions_; }
  /// Returns the index of a dimension, or nothing if the layout does not have the dimension.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view dimension) const;
  /// Returns the index of a dimension.
  /// @throws UnknownName if the layout does not have the dimension. The hint lists the dimensions.
  [[nodiscard]] std::size_t index_of(std::string_view dimension) const;
  /// Returns all ranks, listed so that the last dimension varies fastest.
  [[nodiscard]] const RankSet& ranks() const { return ranks_; }
  /// Returns the number of ranks.
  [[nodiscard]] std::int64_t size() const { return ranks_.size(); }
  /// Returns the position of the rank whose coordinates are all 0.
  [[nodiscard]] std::int64_t offset() const { return offset_; }

  /// Returns the coordinates of the rank, one per dimension, in the order of the dimensions.
  /// Returns nothing if the rank is outside the layout. Takes O(dimensions) time.
  [[nodiscard]] std::optional<std::vector<Coordinate>> coordinates(Rank rank) const;
  /// Writes the coordinates of the rank to `coordinates` without allocating memory.
  /// @return false if the rank is outside the layout. In this case nothing is written.
  /// @throws UsageError unless `coordinates` has one element per dimension.
  bool coordinates(Rank rank, std::span<Coordinate> coordinates) const;
  /// Returns the coordinate of the rank along one dimension, or nothing if the rank is outside the
  /// layout.
  [[nodiscard]] std::optional<Coordinate> coordinate(Rank rank, std::size_t dimension) const;
  /// Returns the rank that has these coordinates.
  /// @throws UsageError if a coordinate is outside its dimension, or if there are more or fewer
  /// coordinates than dimensions.
  [[nodiscard]] Rank rank(std::span<const Coordinate> coordinates) const;

  /// Returns whether all fields are equal.
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<Dimension> dimensions_;
  // `weight` is the distance in `ranks_` between neighbours along a dimension.
  struct Weight {
    std::int64_t weight = 1;
    Divider by;
    friend bool operator==(const Weight& a, const Weight& b) { return a.weight == b.weight; }
  };
  std::vector<Weight> weights_;
  std::int64_t offset_ = 0;
  RankSet ranks_;
};

}  // namespace rankmesh
