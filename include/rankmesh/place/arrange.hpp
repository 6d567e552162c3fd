// SPDX-License-Identifier: BSD-3-Clause
// Finds the assignment of ranks to slots that sends the fewest bytes over the outer levels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/place/traffic.hpp"

namespace rankmesh {

/// An assignment of ranks to slots.
struct Arrangement {
  std::vector<std::int64_t> slots;  ///< the slot of each rank
  std::vector<std::int64_t> bytes;  ///< bytes_per_level() of this assignment
  std::string how;  ///< for example `order dp,pp,tp`, `folded: dp 2*4, tp 1*8` or `search`
};

/// What arrange() has found.
struct Arrangements {
  Arrangement best;       ///< the one with the smallest objective
  Arrangement runner_up;  ///< the best with different bytes; `slots` is empty if there is none
  Arrangement today;      ///< rank r in slot r
  /// A lower bound of the bytes of every assignment. For each level and family, it assumes that
  /// this family alone is placed on the machine.
  std::vector<std::int64_t> bound;
  /// Whether no assignment can be better, because the bound is reached.
  bool is_exact = false;
};

/// What arrange() should keep, and how long it may search.
struct ArrangeOptions {
  /// Families whose groups should not be split over nodes. An assignment that splits fewer of their
  /// groups is better, regardless of the number of bytes.
  std::vector<std::string> kept_in_nodes{};
  /// The limit of the search: the number of swaps of two ranks that it may try. By default, it is
  /// 10,000,000 for up to 128 ranks, and 2,000,000 for more, where each swap takes longer.
  std::optional<std::int64_t> search_budget{};
};

/// Finds an assignment of ranks to slots with the smallest objective. The objective is the list of
/// bytes that leave the units of each level (bytes_per_level()). Lists are compared from the
/// outermost level inward.
///
/// The candidates are all orders of the dimensions, and all foldings. A folding divides each
/// dimension into factors, one for each level, so that the factors of a level fill its units.
/// Starting from the best candidates, the search then swaps ranks, and whole groups, as long as a
/// swap improves the objective. If no swap improves the objective, the search continues from
/// changed assignments, and from new assignments that fill the machine's tree unit by unit. It ends
/// when these do not help either. The ranks keep their numbers, so a preset keeps its order; the
/// launcher must place the ranks in the new slots. The result depends only on the arguments.
/// @throws UsageError if the mesh has more than 2^20 ranks; also the exceptions of
/// bytes_per_level().
[[nodiscard]] RANKMESH_API Arrangements arrange(const MeshPlan& plan, const Machine& machine,
                                                std::span<const FamilyTraffic> traffic,
                                                const ArrangeOptions& options = {});

}  // namespace rankmesh
