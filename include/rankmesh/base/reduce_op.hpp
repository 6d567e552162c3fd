// The reductions that collectives know.
#pragma once

#include <cstdint>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// `avg` is the sum divided by the size of the group; on integers the quotient is truncated toward
/// zero, as NCCL does.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg };

RANKMESH_API std::string_view to_string(ReduceOp op);

}  // namespace rankmesh
