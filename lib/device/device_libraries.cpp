// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <utility>

#include <fmt/format.h>

#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"

namespace rankmesh::detail {
namespace {

std::string cuda_text(int version) { return version == 0 ? "" : device::version_text(version); }

std::string path_of_driver() {
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return {};
  return map->l_name;
}

DeviceInfo info_of(int device) {
  cudaDeviceProp properties{};
  device::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  const device::Identity identity = device::identity_of(device);
  DeviceInfo info{.uuid = {},
                  .name = properties.name,
                  .bus_id = identity.bus_id,
                  .memory = static_cast<std::int64_t>(properties.totalGlobalMem),
                  .has_ecc = properties.ECCEnabled != 0};
  for (const unsigned char byte : identity.uuid) info.uuid += fmt::format("{:02x}", byte);
  return info;
}

}  // namespace

std::vector<LibraryInfo> device_libraries() {
  const device::CudaVersions cuda = device::cuda_versions();
  std::vector<LibraryInfo> result{{"CUDA runtime", cuda_text(cuda.runtime), "linked in", ""},
                                  {"CUDA driver", cuda_text(cuda.driver), path_of_driver(), ""}};
  if (cuda.driver == 0) result.back() = {"CUDA driver", "", "", "looked for libcuda.so.1"};
  try {
    const nccl::Library& library = nccl::Library::load();
    result.push_back({"NCCL", library.version_text(), library.path(), ""});
  } catch (const NoDeviceError& error) {
    result.push_back({"NCCL", "", "", error.message()});
  }
  return result;
}

VisibleDevices visible_devices() {
  const device::CudaVersions cuda = device::cuda_versions();
  if (std::string reason = device::why_no_device(cuda); !reason.empty())
    return {{}, std::move(reason)};
  VisibleDevices visible;
  try {
    for (int d = 0; d < cuda.devices; ++d) visible.devices.push_back(info_of(d));
  } catch (const device::CudaError& error) {
    return {{}, error.message()};
  }
  return visible;
}

}  // namespace rankmesh::detail
