// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>

#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"

namespace rankmesh::detail {
namespace {

// CUDA's 12040 is 12.4.
std::string cuda_text(int version) {
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

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
  if (cuda.driver == 0) return {{}, "no CUDA driver was found (libcuda.so.1)"};
  if (cuda.devices == 0)
    return {{}, "a CUDA driver was found, but no device is visible (CUDA_VISIBLE_DEVICES?)"};
  VisibleDevices visible;
  try {
    for (int d = 0; d < cuda.devices; ++d) visible.devices.push_back(info_of(d));
  } catch (const device::CudaError& error) {
    return {{}, error.message()};
  }
  return visible;
}

}  // namespace rankmesh::detail
