// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic on every NCCL type. Integers wrap round; the types of 16 and 8 bits are computed in
// float and rounded once at the end; ranks are combined in their order.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

#include "comm.hpp"

namespace fake {

// out[i] = inputs[0][i] op inputs[1][i] op ...; `out` may be one of the inputs. Operators above
// the built-in ones are sums of data that was premultiplied.
void combine(const std::vector<const void*>& inputs, void* out, std::size_t count,
             ncclDataType_t type, ncclRedOp_t op);

// to[i] = from[i] * scalar
void premultiply(const void* from, void* to, std::size_t count, ncclDataType_t type,
                 const Reduction& scalar);

}  // namespace fake
