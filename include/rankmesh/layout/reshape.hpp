// SPDX-License-Identifier: BSD-3-Clause
// Divides an ordered set of ranks by factors that differ from the dimensions of the set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// Divides an ordered set of ranks by factors of the caller's choice, like a reshape of an array.
/// For example, a stage of 4 x 3 ranks is divided into chunks of 6 ranks. The result is arithmetic
/// as long as no chunk straddles a boundary of the dimensions of the set. Otherwise a table of all
/// ranks is made, which the families share.
class RANKMESH_API Reshape {
 public:
  /// @param order  the ranks in order.
  /// @param factors  the names and sizes of the factors, outermost first.
  /// @throws UsageError unless the product of the factors is the size of the set; SpecError if a
  /// table would be needed for more than `max_table` ranks.
  Reshape(const RankSet& order, std::span<const std::pair<std::string, std::int64_t>> factors);

  /// Returns the groups along `members`, listed along `listing`. Both parameters name factors, and
  /// the last factor varies fastest. Together they must name each factor once.
  /// @throws UsageError if a factor is unknown.
  [[nodiscard]] GroupFamily family(std::string name, std::span<const std::string_view> members,
                                   std::span<const std::string_view> listing) const;
  /// Returns whether a table was needed.
  [[nodiscard]] bool has_table() const { return has_table_; }

  /// The largest number of ranks in a table.
  static constexpr std::int64_t max_table = std::int64_t{1} << 24;

 private:
  [[nodiscard]] std::vector<std::size_t> pieces_of(std::span<const std::string_view> factors) const;

  Layout layout_;  // its dimensions are the factors, each in one or more pieces
  std::vector<std::pair<std::string, std::vector<std::size_t>>> pieces_;
  bool has_table_ = false;
};

}  // namespace rankmesh
