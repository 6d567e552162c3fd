#include "detail/device_libraries.hpp"
#include "detail/device_side.hpp"
#include "detail/state.hpp"

namespace rankmesh::detail {
namespace {

constexpr const char* reason = "this rankmesh was built without the headers of CUDA and NCCL";

}  // namespace

std::unique_ptr<DeviceSide> open_device_side(MeshState& state) {
  state.services->no_device = reason;
  return nullptr;
}

std::vector<LibraryInfo> device_libraries() {
  return {
      {"CUDA runtime", "", "", reason}, {"CUDA driver", "", "", reason}, {"NCCL", "", "", reason}};
}

}  // namespace rankmesh::detail
