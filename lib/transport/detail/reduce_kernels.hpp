// Reductions of host memory, element by element over several sources.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/base/reduce_op.hpp"

namespace rankmesh::detail {

/// Whether there is arithmetic on the type: integers, float32 and float64.
[[nodiscard]] constexpr bool can_reduce(DataType type) { return !is_narrow_float(type); }

/// out[i] = in[0][i] op in[1][i] op ... in[sources - 1][i], from left to right, so that everybody
/// who reduces the same sources gets the same bits. `avg` divides the sum by `sources`. `out` may
/// be one of the sources, and overlaps none in another way. Integers wrap around.
void reduce(DataType type, ReduceOp op, std::byte* out, const std::byte* const* in, int sources,
            std::int64_t count);

/// values[i] /= by; integers toward zero. What an average is once the sum is there.
void divide(DataType type, std::byte* values, std::int64_t count, int by);

}  // namespace rankmesh::detail
