// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_backend.hpp"

namespace rankmesh::detail {

DeviceProbe probe_devices(const MeshOptions&) {
  return {{}, [](const std::shared_ptr<ControlPlane>&) {
            return DeviceBackendOrReason{
                nullptr, "this rankmesh was built without the headers of CUDA and NCCL"};
          }};
}

}  // namespace rankmesh::detail
