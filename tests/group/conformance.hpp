// SPDX-License-Identifier: BSD-3-Clause
// The table of conformance: operations, reductions, types, sizes and forms of calls, whose results
// are computed by plain arithmetic. Every transport has to pass it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh_test {

inline constexpr std::array all_types{
    rankmesh::DataType::int8,        rankmesh::DataType::uint8,      rankmesh::DataType::int16,
    rankmesh::DataType::uint16,      rankmesh::DataType::int32,      rankmesh::DataType::uint32,
    rankmesh::DataType::int64,       rankmesh::DataType::uint64,     rankmesh::DataType::float16,
    rankmesh::DataType::bfloat16,    rankmesh::DataType::float32,    rankmesh::DataType::float64,
    rankmesh::DataType::float8_e4m3, rankmesh::DataType::float8_e5m2};

/// The members in the order in which floats are combined: first those of each node, and then the
/// results of the nodes. Empty if the order is unknown; then sums and products that depend on it
/// need not be exact. With several nodes, the order of v-forms is unknown, because MPI carries
/// them.
using Order = std::vector<std::vector<std::int64_t>>;

/// Returns the order from the first member to the last.
Order in_group_order(std::int64_t members);
/// Returns the order of docs/arithmetic.md for shared memory and for two levels.
Order by_nodes(const rankmesh::Mesh& mesh, const rankmesh::GroupCoordinator& group);
/// In the order of the group where all members are on one node. Shared memory does not carry the
/// calls of other groups, so their order is unknown.
Order in_shared_memory(const rankmesh::Mesh& mesh, const rankmesh::GroupCoordinator& group);

/// The parts of the table that a test runs.
struct Conformance {
  /// Empty: all collectives, barriers and exchanges with the neighbours.
  std::vector<rankmesh::Operation> operations{};
  std::vector<rankmesh::DataType> types{all_types.begin(), all_types.end()};
  /// The elements of a block. They lie below and above the sizes at which the transports and the
  /// libraries of MPI change their algorithms: 64 B, 4 KiB, 16 KiB and 64 KiB.
  std::vector<std::int64_t> counts{0, 1, 13, 1031, 5003, 40009};
  Order order{};
  /// One of so many entries is run. With 0, jobs of at most 4 ranks run a third of the table each,
  /// so that the jobs of 2, 3 and 4 ranks together run all of it, and larger jobs run a 24th: no
  /// transport has other algorithms for them, and a call takes the longer the more ranks share a
  /// processor.
  int share = 0;
  /// The number of ranks plus this number decides which entries these are.
  int turn = 0;
};

/// What carries out the calls of the table. In a call, `in` and `out` are empty where they are
/// ignored, unless the call is in place.
struct Carrier {
  std::int64_t members = 0, self = 0;
  std::function<void(const rankmesh::Call&)> run;
  /// Starts a call and returns what waits for it.
  std::function<std::function<void()>(const rankmesh::Call&)> start;
};

/// Runs the table, and checks all results, that no other memory was written, and that no input was
/// changed. Asynchronous calls end in another order on each member. Collective over the members.
void check_conformance(const Carrier& carrier, const Conformance& table = {});
/// Does so by the functions of a group.
void check_conformance(rankmesh::GroupCoordinator& group, const Conformance& table = {});

}  // namespace rankmesh_test
