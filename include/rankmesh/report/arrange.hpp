// SPDX-License-Identifier: BSD-3-Clause
// Reports the best assignment of ranks to slots.
#pragma once

#include <span>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/place/arrange.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the best arrangement, the runner-up, today's one and the lower bound, in bytes per
/// level, with the schema `rankmesh.plan/1`. JSON also has the slot of each rank.
/// @param unit  the unit of the traffic: `bytes`, or `relative` if no model gives bytes.
RANKMESH_API Document plan(const MeshPlan& plan, const Machine& machine,
                           std::span<const FamilyTraffic> traffic, std::string_view unit,
                           const Arrangements& found);

}  // namespace rankmesh::report
