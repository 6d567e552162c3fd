// SPDX-License-Identifier: BSD-3-Clause
// The functions of rankmesh that make calls of a group for the program.
#pragma once

#include <cstdint>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// What the program has called, if rankmesh makes another call for it. Members compare it, and
/// errors name it. The numbers are part of the records.
enum class UserFunction : std::uint8_t {
  none,
  all_gather_v,
  all_to_all_v,
  gather_v,
  scatter_v,
  print_in_order,
  check_equal,
  broadcast_message,
  gather_messages,
  all_gather_messages,
  bucket,
  sharded_buffer,
  expert_dispatcher,
  lockstep,
  control_queue,
  redistribution,
  save_checkpoint,
  load_checkpoint,
  keep_tensors,
  restore_tensors,
  dispatch,
  dispatch_choices,
  combine,
  collect_choices,
};

/// Returns the name in the words of the program.
[[nodiscard]] RANKMESH_API std::string_view to_string(UserFunction function);

}  // namespace rankmesh::detail
