// The launchers of the expert dispatcher's kernels where rankmesh was built without nvcc.
#include "device/kernels/expert_rows.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::device {
namespace {

[[noreturn]] void fail() {
  throw NoDeviceError{
      "an expert dispatcher on device memory: this rankmesh was built without CUDA's compiler",
      "use host memory, or build rankmesh where nvcc is"};
}

}  // namespace

void launch(const GatherRows&, StreamRef) { fail(); }
void launch(const WeightedSum&, StreamRef) { fail(); }

}  // namespace rankmesh::device
