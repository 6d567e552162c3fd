// SPDX-License-Identifier: BSD-3-Clause
// Meshes for the tests of groups on two levels.
#pragma once

#include "rankmesh/rankmesh.hpp"

namespace rankmesh_test {

inline rankmesh::MeshOptions two_levels(double deadline = 0) {
  rankmesh::MeshOptions options;
  options.routes = "*.*:host=hierarchical";
  if (deadline > 0) options.deadline = rankmesh::Deadline::Duration{deadline};
  return options;
}

// Returns whether groups of all ranks have two levels.
inline bool spans_levels(const rankmesh::Mesh& mesh) {
  return mesh.placement().node_count() > 1 && mesh.placement().node_count() < mesh.size();
}

}  // namespace rankmesh_test
