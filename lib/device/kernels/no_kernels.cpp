// SPDX-License-Identifier: BSD-3-Clause
// For builds without nvcc. Operations along an axis use copies of CUDA's runtime there.
#include "base/detail/private_api.hpp"
#include "device/kernels/load.hpp"
#include "device/kernels/move_pieces.hpp"

namespace rankmesh::device {

RANKMESH_PRIVATE_API bool has_kernels() noexcept { return false; }
void launch(const MovePieces&, StreamRef) { refuse_without_kernels(); }

}  // namespace rankmesh::device
