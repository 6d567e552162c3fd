// SPDX-License-Identifier: BSD-3-Clause
// How rules for the placement report what they find.
#pragma once

#include <string_view>
#include <vector>

#include "place/check.hpp"

namespace rankmesh::detail {

using Findings = std::vector<PlacementFinding>;

/// Adds a finding with the id and the severity of a rule.
void add_finding(Findings& findings, std::string_view id, PlacementFinding finding);

/// Applies the rules for one family: where its groups lie, and whether its replicas, its stages and
/// its shares of the nodes are placed well.
void check_family(const GroupFamily& family, const Machine& machine, Findings& findings);

/// Applies the rules for the nodes of the machine.
void check_nodes(const Machine& machine, Findings& findings);

/// Applies the rule for meshes that permute their ranks.
void check_order(const MeshPlan& plan, const Machine& machine, Findings& findings);

}  // namespace rankmesh::detail
