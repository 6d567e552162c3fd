// SPDX-License-Identifier: BSD-3-Clause
// The operations of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The operations of a group. They have the same names as in MPI and torch.distributed.
enum class Operation : std::uint8_t {
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
};
inline constexpr std::size_t operation_count = 12;
/// Returns the name, for example "all_reduce".
RANKMESH_API std::string_view to_string(Operation operation);

/// Returns whether the operation is a reduction.
constexpr bool reduces(Operation operation) {
  return operation == Operation::reduce || operation == Operation::all_reduce ||
         operation == Operation::reduce_scatter;
}
/// Returns whether the operation is a collective with a root, that is, one member that has a
/// different part than all other members.
constexpr bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce ||
         operation == Operation::gather || operation == Operation::scatter;
}
/// Returns whether the operation has a form with blocks of different sizes (a v-form).
constexpr bool has_v_form(Operation operation) {
  return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
         operation == Operation::gather || operation == Operation::scatter ||
         operation == Operation::all_to_all;
}
/// Returns whether the operation is point-to-point: send, recv or send_recv.
constexpr bool is_point_to_point(Operation operation) { return operation >= Operation::send; }

}  // namespace rankmesh
