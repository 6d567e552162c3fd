// SPDX-License-Identifier: BSD-3-Clause
#include "detail/patience.hpp"

namespace rankmesh::detail {

Patience& patience_of_tests() noexcept {
  static Patience times;
  return times;
}

}  // namespace rankmesh::detail
