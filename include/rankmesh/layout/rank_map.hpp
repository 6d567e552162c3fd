// SPDX-License-Identifier: BSD-3-Clause
// Moves a mesh to other ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// Maps rank r to `ranks[r]`. A RankMap moves a mesh that was planned on the ranks 0, 1, ... to a
/// part of the world or to permuted ranks. If `ranks` has one constant step, as in `8-31` or
/// `0-120:8`, the mapping is arithmetic. Otherwise, the mapping needs a table of all ranks. The
/// table is created once, and all mapped objects share it. Only one thread at a time may use a
/// RankMap, because map() may create a table.
class RANKMESH_API RankMap {
 public:
  /// @throws SpecError if the mapping needs a table of more than `max_table` ranks.
  explicit RankMap(RankSet ranks);

  /// Returns the ranks of the mesh in the world, in the order of the positions.
  [[nodiscard]] const RankSet& ranks() const { return ranks_; }
  /// Returns the mapped ranks of `set`, in the same order.
  /// @throws UsageError if a rank is not in 0 .. ranks().size()-1.
  [[nodiscard]] RankSet map(const RankSet& set);
  /// Returns the layout on the mapped ranks.
  /// @param prefix  the text that is put before the name of every dimension.
  /// @throws UsageError if a rank is not in 0 .. ranks().size()-1.
  [[nodiscard]] Layout map(const Layout& layout, std::string_view prefix = {});
  /// Returns the family on the mapped ranks.
  /// @param prefix  the text that is put before the name of the family and the names of its
  /// dimensions.
  /// @throws UsageError if a rank is not in 0 .. ranks().size()-1.
  [[nodiscard]] GroupFamily map(const GroupFamily& family, std::string_view prefix = {});

  /// The maximum number of ranks in a table.
  static constexpr std::int64_t max_table = std::int64_t{1} << 24;

 private:
  // Maps positions. The new position is start + step * position. It is an index into `table`, or a
  // rank if `table` is null.
  struct Positions {
    std::int64_t start, step;
    std::shared_ptr<const RankTable> table;
    [[nodiscard]] std::int64_t at(std::int64_t position) const;
    [[nodiscard]] std::int64_t stride(std::int64_t stride) const;
  };
  [[nodiscard]] Positions positions(const RankSet& set);
  [[nodiscard]] std::shared_ptr<const RankTable> composed(
      const std::shared_ptr<const RankTable>& inner);

  RankSet ranks_;
  bool is_stepped_;
  // Maps each old table to its new table.
  std::map<std::shared_ptr<const RankTable>, std::shared_ptr<const RankTable>> tables_;
};

}  // namespace rankmesh
