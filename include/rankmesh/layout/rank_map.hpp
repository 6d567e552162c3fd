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

/// Maps rank r to `ranks[r]`. This moves a mesh that was planned on the ranks 0, 1, ... to a part
/// of the world or to permuted ranks. Ranks with one constant step (`8-31`, `0-120:8`) are mapped
/// by arithmetic. Other ranks need a table of all ranks, which is made once and which all mapped
/// objects share. Several threads must not use one RankMap, because map() may create a table.
class RANKMESH_API RankMap {
 public:
  /// @throws SpecError if a table would be needed for more than `max_table` ranks.
  explicit RankMap(RankSet ranks);

  [[nodiscard]] const RankSet& ranks() const { return ranks_; }
  /// Returns the set in which each rank of `set` is mapped. The order stays the same.
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

  /// The largest number of ranks in a table.
  static constexpr std::int64_t max_table = std::int64_t{1} << 24;

 private:
  // Maps positions: the new position is start + step x position, in the new table.
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
