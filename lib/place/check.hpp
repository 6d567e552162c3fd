// SPDX-License-Identifier: BSD-3-Clause
// Rules for the placement of a mesh on a machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/severity.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh {

/// What a rule has found.
struct PlacementFinding {
  std::string rule;  ///< its id, for example `leaves-domain`; it stays the same in all releases
  Severity severity = Severity::note;  ///< the severity of the rule
  std::string name{};                  ///< the family; empty if the finding concerns the whole mesh
  std::string groups{};  ///< the groups concerned, for example `3 of 8: 0-2`; may be empty
  std::string what;      ///< one sentence
  std::string why;       ///< the reason why this matters
  std::string fix;       ///< what to do
};

/// Applies all rules that need only a plan and a machine. The result is sorted by severity, errors
/// first. This takes about as long as calling spread_of() for every family.
/// @param silenced  the ids of rules that are not applied.
/// @throws SpecError if a silenced id is not the id of a rule; UsageError if a rank has no slot.
[[nodiscard]] std::vector<PlacementFinding> check_placement(
    const MeshPlan& plan, const Machine& machine, std::span<const std::string> silenced = {});

/// Applies the rule `node-loss-fatal`, which reports parts of the model whose copies are all on one
/// node. See shrink() for the meaning of a part. Takes O(ranks x dimensions) time.
/// @throws UsageError if a view leaves ranks out, or if a rank has no slot.
[[nodiscard]] std::vector<PlacementFinding> check_node_loss(const MeshPlan& plan,
                                                            const Machine& machine);

/// Applies the rule `plan-sends-less`: compares the assignment of rank r to slot r with the orders
/// of the dimensions and the foldings that arrange() tries, for the usual traffic. Finds nothing in
/// meshes of more than 16,384 ranks, where this would take seconds.
/// @throws UsageError if a rank has no slot.
[[nodiscard]] std::vector<PlacementFinding> check_alternatives(const MeshPlan& plan,
                                                               const Machine& machine);

/// Applies the rule `preset-mismatch`: compares the groups with the groups of the mesh that the
/// file claims to be (MeshSpec::same_as). Only names that both meshes have are compared.
/// @throws SpecError if the claimed mesh is invalid.
[[nodiscard]] std::vector<PlacementFinding> check_claim(const MeshPlan& plan,
                                                        std::string_view same_as);

}  // namespace rankmesh
