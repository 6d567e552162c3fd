#include "detail/device_side.hpp"
#include "detail/state.hpp"

namespace rankmesh::detail {

std::unique_ptr<DeviceSide> open_device_side(MeshState& state) {
  state.services->no_device = "this rankmesh was built without the headers of CUDA and NCCL";
  return nullptr;
}

}  // namespace rankmesh::detail
