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

/// What one operation of one size took on each transport that carried it.
struct RouteTiming {
  std::int64_t bytes = 0;                   ///< as rules count them
  std::map<std::string, double> seconds{};  ///< per call, the longest of all ranks; by transport
};

/// The rules that follow for one name and operation: a transport other than `usual` gets the sizes
/// at which it took less than `gain` of the usual one's time. Between two measured sizes the
/// smaller one's answer holds; sizes above the largest are left to the rules that follow, those
/// below the smallest go as the smallest.
/// @param timings  in ascending order of bytes; one without a size (barriers) where `sized` is
/// false.
RANKMESH_API std::vector<RouteRule> tuned_rules(const std::string& name, Operation operation,
                                                std::span<const RouteTiming> timings,
                                                bool sized = true, const std::string& usual = "mpi",
                                                double gain = 0.95);

}  // namespace rankmesh
