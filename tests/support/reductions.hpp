// SPDX-License-Identifier: BSD-3-Clause
// The reference implementation of reductions.
#pragma once

#include "../../lib/conformance/detail/plain_arithmetic.hpp"

namespace rankmesh_test {

using rankmesh::conformance::all_reductions;
using rankmesh::conformance::combined;
using rankmesh::conformance::reduced;
using rankmesh::conformance::small_value;

}  // namespace rankmesh_test
