// SPDX-License-Identifier: BSD-3-Clause
// Finds the assignment of ranks to slots that sends the fewest bytes over the outer levels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/place/traffic.hpp"

namespace rankmesh {

/// An assignment of ranks to slots.
struct Arrangement {
  std::vector<std::int64_t> slots;  ///< the slot of each rank
  std::vector<std::int64_t> bytes;  ///< bytes_per_level() of it
  std::string how;  ///< for example `order dp,pp,tp`, `folded: dp 2*4, tp 1*8` or `search`
};

/// What arrange() has found.
struct Arrangements {
  Arrangement best;
  Arrangement runner_up;  ///< the best of those with other bytes; `slots` is empty if there is none
  Arrangement today;      ///< rank r in slot r
  std::vector<std::int64_t> bound;  ///< least_bytes_per_level()
  /// Whether no assignment can be better, because the bound is reached.
  bool is_exact = false;
};

struct ArrangeOptions {
  /// Families whose groups must not be split over nodes. They count before all bytes.
  std::vector<std::string> kept_in_nodes{};
  /// A measure of the time for the search by swaps: the number of members of groups that it visits.
  std::int64_t search_budget = 40'000'000;
};

/// Finds an assignment of ranks to slots with the smallest objective: the bytes that leave the
/// units of each level (bytes_per_level()), compared from the outermost level inward.
///
/// The candidates are all orders of the dimensions, and all foldings: each dimension is divided
/// into factors, one for each level, so that the factors of a level fill its units. Afterwards
/// ranks are swapped as long as this improves the best candidates, and random assignments too if
/// there is time. The numbers of the ranks do not change, so a preset keeps its order; the launcher
/// has to put the ranks into other slots. The result depends only on the arguments.
/// @throws as bytes_per_level(). UsageError also if the mesh has more than 2^20 ranks.
[[nodiscard]] RANKMESH_API Arrangements arrange(const MeshPlan& plan, const Machine& machine,
                                                std::span<const FamilyTraffic> traffic,
                                                const ArrangeOptions& options = {});

}  // namespace rankmesh
