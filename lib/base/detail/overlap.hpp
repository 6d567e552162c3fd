// SPDX-License-Identifier: BSD-3-Clause
// Whether two buffers share memory.
#pragma once

#include <cstddef>
#include <functional>

#include "rankmesh/base/buffer.hpp"

namespace rankmesh::detail {

/// Returns whether the buffers share a byte. std::less can compare pointers to different arrays,
/// for which the result of `<` is unspecified.
inline bool overlap(const ConstBuffer& a, const ConstBuffer& b) {
  const std::less<const std::byte*> before;
  return a.bytes() > 0 && b.bytes() > 0 && before(a.data, b.data + b.bytes()) &&
         before(b.data, a.data + a.bytes());
}

}  // namespace rankmesh::detail
