// SPDX-License-Identifier: BSD-3-Clause
// The predefined reductions.
#pragma once

#include <cstdint>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The predefined reductions. `avg` is the sum divided by the size of the group; for integers the
/// quotient is truncated toward zero, as in NCCL. Integers wrap around. `min` and `max` of a
/// number and a NaN are the number, and -0 is below +0. docs/arithmetic.md compares this with NCCL
/// and MPI.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg };

/// Returns the name, for example "sum".
RANKMESH_API std::string_view to_string(ReduceOp op);

}  // namespace rankmesh
