// SPDX-License-Identifier: BSD-3-Clause
// The reference implementation of reductions.
#pragma once

#include "../../lib/conformance/detail/plain_arithmetic.hpp"

namespace rankmesh_test {

using rankmesh::conformance::all_reductions;
using rankmesh::conformance::combined;
using rankmesh::conformance::reduced;

/// Returns the value of a member at place i: 1, 2 or 3, so that products of 16
/// are exact in every type.
inline int small_value(std::int64_t member, std::int64_t i) {
  return static_cast<int>(1 + (member * 7 + i * 3) % 3);
}

}  // namespace rankmesh_test
