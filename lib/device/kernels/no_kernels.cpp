// SPDX-License-Identifier: BSD-3-Clause
// The launchers of kernels for builds without nvcc.
#include "base/detail/private_api.hpp"
#include "device/kernels/expert_rows.hpp"
#include "device/kernels/load.hpp"
#include "device/kernels/move_pieces.hpp"
#include "device/kernels/move_rows.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::device {
namespace {

[[noreturn]] void fail_without_kernels() {
  throw NoDeviceError{
      "an expert dispatcher cannot use device memory: rankmesh was built without CUDA's compiler",
      "use host memory, or build rankmesh on a machine with nvcc"};
}

}  // namespace

RANKMESH_PRIVATE_API bool has_kernels() noexcept { return false; }
void load_kernels() noexcept {}

RANKMESH_PRIVATE_API void launch(const GatherRows&, StreamRef) { fail_without_kernels(); }
RANKMESH_PRIVATE_API void launch(const WeightedSum&, StreamRef) { fail_without_kernels(); }
// Operations along an axis use copies of CUDA's runtime in this build.
void launch(const MovePieces&, StreamRef) { fail_without_kernels(); }
// So do redistributions.
RANKMESH_PRIVATE_API void launch(std::span<const RowsToMove>, StreamRef) { fail_without_kernels(); }

}  // namespace rankmesh::device
