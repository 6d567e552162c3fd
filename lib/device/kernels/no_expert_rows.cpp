// SPDX-License-Identifier: BSD-3-Clause
// The launchers of the expert dispatcher's kernels for builds without nvcc.
#include "device/kernels/expert_rows.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::device {
namespace {

[[noreturn]] void fail() {
  throw NoDeviceError{
      "an expert dispatcher cannot use device memory: rankmesh was built without CUDA's compiler",
      "use host memory, or build rankmesh on a machine with nvcc"};
}

}  // namespace

void launch(const GatherRows&, StreamRef) { fail(); }
void launch(const WeightedSum&, StreamRef) { fail(); }

}  // namespace rankmesh::device
