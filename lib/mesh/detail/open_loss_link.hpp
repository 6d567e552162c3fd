// SPDX-License-Identifier: BSD-3-Clause
// Connects the ranks of a mesh on several nodes that may survive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/shrink.hpp"
#include "rankmesh/mesh/options.hpp"
#include "wait/detail/control_plane.hpp"
#include "wait/detail/loss_link.hpp"

namespace rankmesh::detail {

/// Returns what remains of a mesh with spare ranks; nothing, also no plan, if they are too few or
/// alone.
[[nodiscard]] Shrunk remains_of(const MeshPlan& plan, ShrinkPolicy policy,
                                std::span<const Rank> lost, std::int64_t spares);

/// Returns Survival::exclude_after in nanoseconds; 0 if it is empty.
[[nodiscard]] std::int64_t exclude_after_of(const Survival& survival);

/// Tells all ranks where this one receives messages about losses, and connects them. Collective
/// over the mesh; blocks.
/// @throws UnsupportedError on all ranks if one of them has no network.
[[nodiscard]] std::unique_ptr<LossLink> open_loss_link(ControlPlane& control,
                                                       const Survival& survival,
                                                       const std::string& description,
                                                       const std::shared_ptr<const MeshPlan>& plan);

}  // namespace rankmesh::detail
