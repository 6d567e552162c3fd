// The same ranks in the same order, divided otherwise.
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

/// An ordered set of ranks whose index is written in factors of the caller's choice: chunks of 6 of
/// a stage of 4 x 3, say. Stays arithmetic where the factors meet the set's own modes, each
/// boundary dividing the next; where one straddles the other, a table of all ranks is made, which
/// the families share.
class RANKMESH_API Reshape {
 public:
  /// @param factors  outermost first; their product is the size of the set.
  /// @throws UsageError where it is not; SpecError where a table would be needed for more ranks
  /// than
  ///         `max_table` (2^24).
  Reshape(const RankSet& order, std::span<const std::pair<std::string, std::int64_t>> factors);

  /// Groups along `members`, listed along `listing`; the last varies fastest in both, each factor
  /// once.
  [[nodiscard]] GroupFamily family(std::string name, std::span<const std::string_view> members,
                                   std::span<const std::string_view> listing) const;
  [[nodiscard]] bool has_table() const { return has_table_; }

  static constexpr std::int64_t max_table = std::int64_t{1} << 24;

 private:
  [[nodiscard]] std::vector<std::size_t> pieces_of(std::span<const std::string_view> factors) const;

  Layout layout_;  // dimensions: the factors, each in one or more pieces
  std::vector<std::pair<std::string, std::vector<std::size_t>>> pieces_;
  bool has_table_ = false;
};

}  // namespace rankmesh
