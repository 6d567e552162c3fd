// SPDX-License-Identifier: BSD-3-Clause
// The error of a call for which the host has too little memory.
#pragma once

#include <string>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Returns the error of a call that needs more memory than its buffers, and gets none.
/// @param activity  The call in the words of the program.
inline Error too_little_memory(const std::string& activity, const Call& call) {
  return Error{fmt::format("{}: there is too little memory for {} bytes of buffers", activity,
                           call.in.bytes() + call.out.bytes()),
               "use smaller pieces, or give the job more memory"};
}

}  // namespace rankmesh::detail
