// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_libraries.hpp"

namespace rankmesh::detail {
namespace {

constexpr const char* reason = "this rankmesh was built without the headers of CUDA and NCCL";

}  // namespace

std::vector<LibraryInfo> device_libraries() {
  return {
      {"CUDA runtime", "", "", reason}, {"CUDA driver", "", "", reason}, {"NCCL", "", "", reason}};
}

VisibleDevices visible_devices() { return {{}, reason}; }

}  // namespace rankmesh::detail
