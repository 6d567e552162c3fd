// SPDX-License-Identifier: BSD-3-Clause
// The output of a member whose result consists of no input.
#pragma once

#include <cstring>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Sets the output of the first member of an exclusive scan to zeros or, with a user's reduction,
/// to values T{}.
inline void clear_output(const Call& call) {
  if (call.out.count == 0) return;
  if (call.user != nullptr)
    call.user->clear(call.out.data, call.out.count);
  else
    std::memset(call.out.data, 0, static_cast<std::size_t>(call.out.bytes()));
}

}  // namespace rankmesh::detail
