// SPDX-License-Identifier: BSD-3-Clause
// Runs parts of the table of conformance (rankmesh/conformance/conformance.hpp) in the tests.
#pragma once

#include "rankmesh/conformance/conformance.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh_test {

using rankmesh::conformance::all_types;
using rankmesh::conformance::Carrier;
using rankmesh::conformance::in_group_order;
using rankmesh::conformance::Order;

/// Returns the order of docs/arithmetic.md for shared memory and for two levels.
Order by_nodes(const rankmesh::Mesh& mesh, const rankmesh::GroupCoordinator& group);
/// In the order of the group where all members are on one node. Shared memory does not carry the
/// calls of other groups, so their order is unknown.
Order in_shared_memory(const rankmesh::Mesh& mesh, const rankmesh::GroupCoordinator& group);

/// The parts of the table that a test runs.
struct Conformance : rankmesh::conformance::Table {
  /// Jobs of at most 4 ranks run a third of the table each, so that the jobs of 2, 3 and 4 ranks
  /// together run all of it, and larger jobs run a 24th: no transport has other algorithms for
  /// them, and a call takes the longer the more ranks share a processor. The number of ranks plus
  /// `turn` decides which entries these are.
  Conformance();
};

/// Runs the table, and reports what is wrong as failures of the test.
void check_conformance(const Carrier& carrier, const Conformance& table = {});
/// Does so by the functions of a group.
void check_conformance(rankmesh::GroupCoordinator& group, const Conformance& table = {});

}  // namespace rankmesh_test
