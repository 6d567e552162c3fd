// SPDX-License-Identifier: BSD-3-Clause
// The operations of a group, and what distinguishes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The operations of a group. They have the same names as in MPI and torch.distributed. Records
/// contain their numbers, so new operations are added at the end.
enum class RANKMESH_API Operation : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  gather,
  scatter,
  all_to_all,
  send,
  recv,
  send_recv,
  scan,
  exscan,
};

/// What a buffer of an operation holds.
enum class Extent : std::uint8_t {
  none,    ///< The operation does not have this buffer.
  block,   ///< One block.
  blocks,  ///< A block for each member, in group order.
};

/// Whom a member waits for in an operation that has data.
enum class Awaited : std::uint8_t {
  all,   ///< All members.
  root,  ///< The root. The root waits for nobody. If there is an input, only the root has it.
  all_by_root,  ///< The root waits for all, the others for nobody. Only the root has the output.
  earlier,      ///< The members before it. It may also wait for the others.
  peer,         ///< The other end of a message.
};

/// The form of an operation in which input and output share memory.
enum class InPlace : std::uint8_t {
  none,                      ///< There is none.
  same,                      ///< The input is the output.
  block_of_output,           ///< The input is the member's block of the output.
  block_of_input,            ///< The output is the member's block of the input.
  block_of_input_on_device,  ///< The same, but only in device memory. In MPI's form the result is
                             ///< at the beginning of the input.
};

/// What distinguishes an operation, except for how it is carried out. All parts of rankmesh that
/// check, route, compare, record or show calls read these facts; algorithms do not.
struct OperationFacts {
  std::string_view name;  ///< The name of its function.
  Extent in;              ///< What a member passes.
  Extent out;             ///< What a member gets.
  Awaited awaited;        ///< Whom its members wait for. It also says whether there is a root.
  bool reduces;           ///< Whether a reduction combines the elements.
  InPlace in_place;       ///< Its form in place.
  std::string_view mpi;   ///< The function of MPI.
  std::string_view nccl;  ///< The function or functions of NCCL; empty if it has none.
  /// Whether a member's result leaves out its own input. The first member then gets zeros.
  bool excludes_own = false;
};

/// The facts, in the order of Operation.
inline constexpr OperationFacts operation_facts[] = {
    {"barrier", Extent::none, Extent::none, Awaited::all, false, InPlace::none, "MPI_Barrier", ""},
    {"broadcast", Extent::none, Extent::block, Awaited::root, false, InPlace::none, "MPI_Bcast",
     "ncclBroadcast"},
    {"reduce", Extent::block, Extent::block, Awaited::all_by_root, true, InPlace::same,
     "MPI_Reduce", "ncclReduce"},
    {"all_reduce", Extent::block, Extent::block, Awaited::all, true, InPlace::same, "MPI_Allreduce",
     "ncclAllReduce"},
    {"all_gather", Extent::block, Extent::blocks, Awaited::all, false, InPlace::block_of_output,
     "MPI_Allgather", "ncclAllGather"},
    {"reduce_scatter", Extent::blocks, Extent::block, Awaited::all, true,
     InPlace::block_of_input_on_device, "MPI_Reduce_scatter_block", "ncclReduceScatter"},
    {"gather", Extent::block, Extent::blocks, Awaited::all_by_root, false, InPlace::block_of_output,
     "MPI_Gather", "ncclGather"},
    {"scatter", Extent::blocks, Extent::block, Awaited::root, false, InPlace::block_of_input,
     "MPI_Scatter", "ncclScatter"},
    {"all_to_all", Extent::blocks, Extent::blocks, Awaited::all, false, InPlace::same,
     "MPI_Alltoall", "ncclAlltoAll"},
    {"send", Extent::block, Extent::none, Awaited::peer, false, InPlace::none, "MPI_Send",
     "ncclSend"},
    {"recv", Extent::none, Extent::block, Awaited::peer, false, InPlace::none, "MPI_Recv",
     "ncclRecv"},
    {"send_recv", Extent::block, Extent::block, Awaited::peer, false, InPlace::none, "MPI_Sendrecv",
     "ncclSend, ncclRecv"},
    {"scan", Extent::block, Extent::block, Awaited::earlier, true, InPlace::same, "MPI_Scan", ""},
    {"exscan", Extent::block, Extent::block, Awaited::earlier, true, InPlace::same, "MPI_Exscan",
     "", true},
};
inline constexpr std::size_t operation_count = std::size(operation_facts);

/// Returns the facts about an operation.
constexpr const OperationFacts& facts_of(Operation operation) {
  return operation_facts[static_cast<std::size_t>(operation)];
}
/// Returns the name, for example "all_reduce".
RANKMESH_API std::string_view to_string(Operation operation);

/// Returns whether the operation is a reduction.
constexpr bool reduces(Operation operation) { return facts_of(operation).reduces; }
/// Returns whether the operation has data.
constexpr bool has_data(Operation operation) {
  return facts_of(operation).in != Extent::none || facts_of(operation).out != Extent::none;
}
/// Returns whether the operation is a collective with a root, that is, one member that has a
/// different part than all other members.
constexpr bool has_root(Operation operation) {
  const Awaited awaited = facts_of(operation).awaited;
  return awaited == Awaited::root || awaited == Awaited::all_by_root;
}
/// Returns whether a member has an input.
/// @param at_root  Whether it is the root. Operations without a root ignore it.
constexpr bool has_input(Operation operation, bool at_root) {
  const OperationFacts& facts = facts_of(operation);
  return facts.in != Extent::none && (at_root || facts.awaited != Awaited::root);
}
/// Returns whether a member has an output.
/// @param at_root  Whether it is the root. Operations without a root ignore it.
constexpr bool has_output(Operation operation, bool at_root) {
  const OperationFacts& facts = facts_of(operation);
  return facts.out != Extent::none && (at_root || facts.awaited != Awaited::all_by_root);
}
/// Returns whether the output consists of the blocks of all members, and the input is one block.
constexpr bool gathers(Operation operation) {
  return facts_of(operation).in == Extent::block && facts_of(operation).out == Extent::blocks;
}
/// Returns whether the input consists of a block for each member, and the output is one block.
constexpr bool scatters(Operation operation) {
  return facts_of(operation).in == Extent::blocks && facts_of(operation).out == Extent::block;
}
/// Returns whether the operation has a form with blocks of different sizes (a v-form).
constexpr bool has_v_form(Operation operation) {
  return facts_of(operation).in == Extent::blocks || facts_of(operation).out == Extent::blocks;
}
/// Returns whether the elements of the output are counted and not those of the input. The counted
/// buffer is the one that each member has and that is a single block, if there is such a buffer.
constexpr bool counts_output(Operation operation) {
  return facts_of(operation).in == Extent::none || scatters(operation);
}
/// Returns whether the operation is point-to-point: send, recv or send_recv.
constexpr bool is_point_to_point(Operation operation) {
  return operation >= Operation::send && operation <= Operation::send_recv;
}

}  // namespace rankmesh
