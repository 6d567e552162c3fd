// The operations that a group knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

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
RANKMESH_API std::string_view to_string(Operation operation);

/// Whether it does arithmetic.
constexpr bool reduces(Operation operation) {
  return operation == Operation::reduce || operation == Operation::all_reduce ||
         operation == Operation::reduce_scatter;
}
/// Whether it concerns two members, not the whole group.
constexpr bool is_point_to_point(Operation operation) { return operation >= Operation::send; }

}  // namespace rankmesh
