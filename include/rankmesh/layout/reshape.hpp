// SPDX-License-Identifier: BSD-3-Clause
// Divides an ordered set of ranks by factors that need not be the dimensions of its layout.
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

/// Divides an ordered set of ranks by factors that the caller chooses, like a reshape of an array.
/// For example, a stage of 4 x 3 ranks can be divided into chunks of 6 ranks. Strides can describe
/// the result if the factors and the sizes of the original dimensions divide one another.
/// Otherwise, the constructor creates a table of all ranks, which all families of this reshape
/// share.
class RANKMESH_API Reshape {
 public:
  /// @param order  the ranks, in the order in which they are divided.
  /// @param factors  the names and sizes of the factors, outermost first.
  /// @throws UsageError unless the product of the factors is the size of the set; SpecError if a
  /// table of more than `max_table` ranks would be needed.
  Reshape(const RankSet& order, std::span<const std::pair<std::string, std::int64_t>> factors);

  /// Returns the groups along `members`, in the order that `listing` gives. Both parameters contain
  /// names of factors, and the last factor varies fastest. Together, the two parameters must
  /// contain each factor once.
  /// @throws UsageError if a factor is unknown.
  [[nodiscard]] GroupFamily family(std::string name, std::span<const std::string_view> members,
                                   std::span<const std::string_view> listing) const;
  /// Returns whether the reshape needed a table.
  [[nodiscard]] bool has_table() const { return has_table_; }

  /// The maximum number of ranks in a table.
  static constexpr std::int64_t max_table = std::int64_t{1} << 24;

 private:
  [[nodiscard]] std::vector<std::size_t> pieces_of(std::span<const std::string_view> factors) const;

  Layout layout_;  // each factor is the product of one or more of its dimensions
  std::vector<std::pair<std::string, std::vector<std::size_t>>> pieces_;
  bool has_table_ = false;
};

}  // namespace rankmesh
