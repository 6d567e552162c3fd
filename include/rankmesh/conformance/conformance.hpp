// SPDX-License-Identifier: BSD-3-Clause
// The conformance kit: checks what a transport computes, call by call, against plain arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/transport/transport_factory.hpp"

namespace rankmesh::conformance {

/// The types of the elements.
inline constexpr std::array all_types{
    DataType::int8,        DataType::uint8,      DataType::int16,   DataType::uint16,
    DataType::int32,       DataType::uint32,     DataType::int64,   DataType::uint64,
    DataType::float16,     DataType::bfloat16,   DataType::float32, DataType::float64,
    DataType::float8_e4m3, DataType::float8_e5m2};

/// The members in the order in which floats are combined: first those of each node, and then the
/// results of the nodes. Empty if the order is unknown; then sums and products that depend on it
/// need not be exact. With several nodes, the order of v-forms is unknown, because MPI carries
/// them.
using Order = std::vector<std::vector<std::int64_t>>;

/// Returns the order from the first member to the last.
[[nodiscard]] RANKMESH_API Order in_group_order(std::int64_t members);

/// The parts of the table of conformance that are run: operations, reductions, types, sizes and
/// forms of calls.
struct Table {
  /// Empty: all collectives, barriers and exchanges with the neighbours.
  std::vector<Operation> operations{};
  std::vector<DataType> types{all_types.begin(), all_types.end()};  ///< The types.
  /// The elements of a block. They lie below and above the sizes at which the transports and the
  /// libraries of MPI change their algorithms: 64 B, 4 KiB, 16 KiB and 64 KiB.
  std::vector<std::int64_t> counts{0, 1, 13, 1031, 5003, 40009};
  Order order{};  ///< In which order floats are combined.
  int share = 1;  ///< Of each operation and form, one of so many calls is run.
  int turn = 0;   ///< Which ones; the calls of all turns together are the whole table.
};

/// What carries out the calls of the table. In a call, `in` and `out` are empty where they are
/// ignored, unless the call is in place.
struct Carrier {
  std::int64_t members = 0;                ///< The number of members.
  std::int64_t self = 0;                   ///< This member.
  std::function<void(const Call&)> run{};  ///< Runs a call.
  /// Starts a call and returns what waits for it.
  std::function<std::function<void()>(const Call&)> start{};
  /// Gets the description of each call before it is made. May be empty.
  std::function<void(const std::string&)> before{};
  /// Gets a sentence when a call is wrong whose kind (operation and form) was right so far, or when
  /// a call throws (`thrown`). Kinds are numbers below `thrown`. May be empty.
  std::function<void(std::size_t kind, const std::string& sentence)> found{};
};
/// Stands for the kind of a call that throws.
inline constexpr std::size_t thrown = 8 * operation_count;

/// What has been run, and what was wrong on this member.
struct Report {
  /// The number of calls.
  struct Tally {
    std::int64_t calls = 0;  ///< All.
    std::int64_t wrong = 0;  ///< Those with a wrong result.
  };
  std::map<Operation, Tally> operations{};  ///< By operation.
  /// A sentence about the first wrong call of each operation and form.
  std::vector<std::string> failures{};
  bool has_ended_early = false;  ///< Whether a call threw, so the rest was not run.
};

/// Runs the table, and checks all results, that no other memory was written, and that no input was
/// changed. Asynchronous calls end in another order on each member. Collective over the members;
/// blocks. If a call throws, the rest is not run.
[[nodiscard]] RANKMESH_API Report check(const Carrier& carrier, const Table& table = {});
/// Does so with the calls of a group.
/// @param carrier  Its `before` and `found` are called; the rest is that of the group.
[[nodiscard]] RANKMESH_API Report check(GroupCoordinator& group, const Table& table = {},
                                        Carrier carrier = {});

/// Checks a transport of the program; to be called by main(). Initialises MPI, opens groups of 2,
/// 3, ... ranks up to the size of the job with the transport, and runs the table in each of them.
/// Prints the first wrong call of each operation and form when it is found, and at the end how many
/// calls the transport has carried and declined, and how many results of all ranks were wrong.
/// Calls that the transport declines are run by other transports. A call that takes longer than a
/// minute ends the job, and is named, and so is the call of a rank that a signal ends. Collective
/// over MPI_COMM_WORLD.
///
/// Arguments of the command line: `--quick` runs a twelfth of the calls of each operation and form;
/// `--seconds N` changes the minute; a name of an operation, such as `all_reduce`, leaves out the
/// other ones.
/// @param name     The name of the transport in routes.
/// @param factory  Opens it for a group.
/// @return 0 if all results are right and the transport has carried a call, otherwise 1.
[[nodiscard]] RANKMESH_API int check_transport(int argc, char** argv, const std::string& name,
                                               const TransportFactory& factory);

}  // namespace rankmesh::conformance
