// Named sizes and strides: rank <-> coordinates.
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

/// One view of a mesh as arithmetic: each dimension has a size and a stride in positions; a
/// position is a rank after adding `offset`, or after looking it up in a table that the whole plan
/// shares.
class RANKMESH_API Layout {
 public:
  struct Dimension {
    std::string name;
    std::int64_t size = 1;
    std::int64_t stride = 1;
    friend bool operator==(const Dimension&, const Dimension&) = default;
  };

  /// Dimensions outermost first, the last varying fastest, as in torch and NumPy.
  /// @param offset  position of the ranks' first, for a mesh on a part of the world.
  /// @throws SpecError where the product of the sizes overflows.
  static Layout row_major(std::span<const std::pair<std::string, std::int64_t>> sizes,
                          std::int64_t offset = 0,
                          std::shared_ptr<const RankTable> table = nullptr);

  /// Any strides that describe a set of ranks; the order of the dimensions is the order of display.
  Layout(std::vector<Dimension> dimensions, std::int64_t offset,
         std::shared_ptr<const RankTable> table);

  [[nodiscard]] const std::vector<Dimension>& dimensions() const { return dimensions_; }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view dimension) const;
  /// @throws UnknownName, whose hint lists the dimensions.
  [[nodiscard]] std::size_t index_of(std::string_view dimension) const;
  /// All ranks, the last dimension varying fastest.
  [[nodiscard]] const RankSet& ranks() const { return ranks_; }
  [[nodiscard]] std::int64_t size() const { return ranks_.size(); }
  [[nodiscard]] std::int64_t offset() const { return offset_; }

  /// One coordinate per dimension, in their order; nothing where the rank is outside.
  /// O(dimensions).
  [[nodiscard]] std::optional<std::vector<Coordinate>> coordinates(Rank rank) const;
  /// The same without allocating. False where the rank is outside, and then nothing is written.
  /// @throws UsageError where `coordinates` has not one element per dimension.
  bool coordinates(Rank rank, std::span<Coordinate> coordinates) const;
  /// The coordinate along one dimension, without building the others.
  [[nodiscard]] std::optional<Coordinate> coordinate(Rank rank, std::size_t dimension) const;
  /// @throws UsageError where a coordinate is outside its dimension or their number is wrong.
  [[nodiscard]] Rank rank(std::span<const Coordinate> coordinates) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<Dimension> dimensions_;
  // What one step of each coordinate adds to the index of `ranks_`.
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
