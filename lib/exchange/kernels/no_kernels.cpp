// SPDX-License-Identifier: BSD-3-Clause
// For builds without nvcc. Redistributions use copies of CUDA's runtime there.
#include "base/detail/private_api.hpp"
#include "device/kernels/load.hpp"
#include "exchange/kernels/expert_rows.hpp"
#include "exchange/kernels/move_rows.hpp"

namespace rankmesh::device {

RANKMESH_PRIVATE_API void launch(const GatherRows&, StreamRef) { refuse_without_kernels(); }
RANKMESH_PRIVATE_API void launch(const WeightedSum&, StreamRef) { refuse_without_kernels(); }
RANKMESH_PRIVATE_API void launch(std::span<const RowsToMove>, StreamRef) {
  refuse_without_kernels();
}

}  // namespace rankmesh::device
