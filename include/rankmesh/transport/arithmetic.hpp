// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of reductions, for transports of a program.
#pragma once

#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// Computes out[i] = a[i] op b[i] for each of `count` elements, as the transports of rankmesh do
/// (docs/arithmetic.md): the minimum of a number and a NaN is the number, and integers wrap
/// around. For averages, this function adds the elements; finish_average() divides the sum at the
/// end. Thread-safe.
/// @param out The result. It may be `a` or `b`, but must not overlap them in any other way.
/// @throws UnsupportedError if the elements are 16- or 8-bit floats. On host memory, rankmesh
/// converts them to float32 before a transport gets the call.
RANKMESH_API void combine(DataType type, ReduceOp op, void* out, const void* a, const void* b,
                          std::int64_t count);

/// Divides the sums of an average by the number of members. Integers are truncated toward zero.
/// @throws UnsupportedError under the same condition as combine().
RANKMESH_API void finish_average(DataType type, void* values, std::int64_t count,
                                 std::int64_t members);

}  // namespace rankmesh
