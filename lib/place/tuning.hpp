// SPDX-License-Identifier: BSD-3-Clause
// Derives rules from measurements.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/routes/route_table.hpp"

namespace rankmesh {

/// The times of one operation at one size, for each transport that can carry the operation.
struct RouteTiming {
  std::int64_t bytes = 0;  ///< size, as docs/routes.md defines it for rules
  /// The time per call for each transport. The time is the maximum over the ranks.
  std::map<std::string, double> seconds{};
};

/// Returns the rules that follow from measurements of one operation in one kind of groups. A
/// transport gets a rule for the sizes at which it was the fastest transport and took less than
/// `gain` times the time of the usual transport. The result for a measured size applies to all
/// sizes up to the next measured size. Sizes below the smallest measured size are treated like the
/// smallest measured size. Sizes above the largest measured size get no rule.
/// @param conditions  the conditions of the rules on the groups: the name of the family, or the
/// number of ranks, the nodes and the cores.
/// @param timings  the timings, in ascending order of bytes. If `sized` is false, there is a single
/// timing, which has no size.
/// @param sized  false for barriers, because rules for barriers have no sizes.
/// @param usual  the transport that is used if there is no rule.
std::vector<RouteRule> tuned_rules(const RouteRule& conditions, Operation operation,
                                   std::span<const RouteTiming> timings, bool sized = true,
                                   const std::string& usual = "mpi", double gain = 0.95);

}  // namespace rankmesh
