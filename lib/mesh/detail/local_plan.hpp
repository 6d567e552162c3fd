// SPDX-License-Identifier: BSD-3-Clause
// What one rank decides alone before it opens a mesh.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "device_backend.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/settings.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "rankmesh/wait/agreement.hpp"

namespace rankmesh::detail {

/// The plan that this rank made of the description, or the reason why it has none.
struct LocalPlan {
  std::shared_ptr<const MeshPlan> plan;  ///< Null if it failed.
  std::optional<MeshSpec> spec;
  std::optional<RouteTable> routes;
  Deadline::Duration timeout{600};
  Deadline::Duration stall{30};
  Settings settings;
  DeviceProbe devices;
  std::exception_ptr failure;  ///< Why there is no plan; null if there is one.
  std::string message;         ///< The text of `failure`.
};

/// Makes the plan, and replaces the options that are empty by the values of the environment. Local;
/// throws nothing, because the other ranks have to learn of a failure.
/// @param ranks  The size of the world.
/// @param given  Replaces the plan of the description; may be null.
LocalPlan plan_locally(int ranks, MeshOptions& options, const std::function<MeshSpec()>& parse,
                       const MeshPlan* given);

/// Returns what all ranks must pass alike.
Agreement agreement_on(const LocalPlan& local, int ranks, const std::string& description,
                       const MeshOptions& options);

}  // namespace rankmesh::detail
