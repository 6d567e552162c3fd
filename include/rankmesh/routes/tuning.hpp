// SPDX-License-Identifier: BSD-3-Clause
// Rules from measurements.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/routes/route_table.hpp"

namespace rankmesh {

/// The times of one operation at one size on each transport that carried it.
struct RouteTiming {
  std::int64_t bytes = 0;                   ///< size as rules count it
  std::map<std::string, double> seconds{};  ///< by transport: per call, the maximum over the ranks
};

/// Returns the rules that follow from measurements of one family and operation: a transport gets
/// the sizes at which it took less than `gain` times the time of the usual transport. The answer
/// for a measured size holds up to the next measured size. Sizes below the smallest are treated
/// like the smallest; sizes above the largest get no rule.
/// @param name  the name of the family.
/// @param timings  in ascending order of bytes; a single one without a size if `sized` is false.
/// @param sized  false for barriers, whose rules have no sizes.
/// @param usual  the transport that is used without a rule.
RANKMESH_API std::vector<RouteRule> tuned_rules(const std::string& name, Operation operation,
                                                std::span<const RouteTiming> timings,
                                                bool sized = true, const std::string& usual = "mpi",
                                                double gain = 0.95);

}  // namespace rankmesh
