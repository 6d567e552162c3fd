// SPDX-License-Identifier: BSD-3-Clause
#include "device/kernels/load.hpp"

#include "base/detail/private_api.hpp"

namespace rankmesh::device {

RANKMESH_PRIVATE_API bool has_kernels() noexcept { return true; }

void load_kernels() noexcept {
  load_expert_rows();
  load_move_pieces();
  load_move_rows();
}

}  // namespace rankmesh::device
