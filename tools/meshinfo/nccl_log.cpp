// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_log.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace rankmesh::meshinfo {

NcclLog::NcclLog(bool is_wanted) {
  for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"})
    is_wanted = is_wanted && std::getenv(name) == nullptr;
  std::error_code failure;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(failure);
  if (!is_wanted || failure) return;
  // A folder of its own, so that NCCL does not follow a link that another user has put there.
  std::string folder = (parent / "meshinfo-nccl-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return;
  path_ = folder + "/log";
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,NET,P2P,SHM,NVLS", 1);
  setenv("NCCL_DEBUG_FILE", path_.c_str(), 1);
}

NcclLog::~NcclLog() {
  std::error_code ignored;
  if (!path_.empty())
    std::filesystem::remove_all(std::filesystem::path{path_}.parent_path(), ignored);
}

std::string NcclLog::text() const {
  if (path_.empty()) return {};
  std::ifstream file{path_};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace rankmesh::meshinfo
