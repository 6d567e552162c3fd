// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>

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

}  // namespace rankmesh::detail
