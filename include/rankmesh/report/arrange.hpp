// SPDX-License-Identifier: BSD-3-Clause
// Reports the best assignment of ranks to slots.
#pragma once

#include <span>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/place/arrange.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the bytes per level of the best arrangement, of the runner-up and of today's
/// arrangement, and the lower bound. The schema is `rankmesh.plan/1`. JSON also has the slot of
/// each rank.
/// @param unit the unit of the traffic: `bytes`, or `relative` if the traffic is only relative.
RANKMESH_API Document plan(const MeshPlan& plan, const Machine& machine,
                           std::span<const FamilyTraffic> traffic, std::string_view unit,
                           const Arrangements& found);

}  // namespace rankmesh::report
