// SPDX-License-Identifier: BSD-3-Clause
// Reduces host memory, element by element over several sources.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/base/reduce_op.hpp"

namespace rankmesh::detail {

/// Returns whether reduce() supports the type: integers, float32 and float64.
[[nodiscard]] constexpr bool can_reduce(DataType type) { return !is_narrow_float(type); }

/// Computes out[i] = in[0][i] op in[1][i] op ... in[sources - 1][i], from left to right, so that
/// all members that reduce the same sources get the same bits. `avg` divides the sum by
/// `sources`. Integers wrap around.
/// @param out  It may be one of the sources; it must not overlap them in any other way.
void reduce(DataType type, ReduceOp op, std::byte* out, const std::byte* const* in, int sources,
            std::int64_t count);

/// Computes values[i] /= by; integers are truncated toward zero. This makes averages of sums.
void divide(DataType type, std::byte* values, std::int64_t count, int by);

}  // namespace rankmesh::detail
