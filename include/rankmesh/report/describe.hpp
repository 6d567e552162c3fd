// SPDX-License-Identifier: BSD-3-Clause
// Describes one family of groups, or one group.
#pragma once

#include <cstdint>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Describes all groups of a name, with the schema `rankmesh.family/1`: how they cover the world,
/// their communicators and their options. The table has a row for each of the first 65,536 groups;
/// the text has the first 32 of them, and JSON has none.
/// @param name  a name of the plan, or a product of dimensions such as `dp*tp`.
/// @param live  the facts of the running job, or null. With these facts, the rows have the nodes.
/// @throws UnknownName if the plan has no such groups.
RANKMESH_API Document describe_family(const MeshPlan& plan, std::string_view name,
                                      const LiveFacts* live);

/// Describes one group, with the schema `rankmesh.group/1`: the coordinates that its members share,
/// the communicator that it uses, and its neighbours in listing order. The table has a row for each
/// member, of which the text has the first 32.
/// @param group  the number of the group in listing order.
/// @throws UnknownName if the plan has no such name; UsageError if it has no group of this number,
/// or if the group has more than 1,048,576 ranks.
RANKMESH_API Document describe_group(const MeshPlan& plan, std::string_view name,
                                     std::int64_t group, const LiveFacts* live);

}  // namespace rankmesh::report
