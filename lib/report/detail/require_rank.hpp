// SPDX-License-Identifier: BSD-3-Clause
// The check that every report about one rank begins with.
#pragma once

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh::report::detail {

/// Checks that the rank is in the world.
/// @throws UsageError if it is not.
inline void require_rank(const MeshPlan& plan, Rank rank) {
  if (rank.value() < 0 || rank.value() >= plan.world_size())
    throw UsageError{
        fmt::format("rank {} is outside the world of {} ranks", rank.value(), plan.world_size()),
        fmt::format("ranks run from 0 to {}", plan.world_size() - 1)};
}

}  // namespace rankmesh::report::detail
