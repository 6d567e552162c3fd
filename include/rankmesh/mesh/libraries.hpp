// SPDX-License-Identifier: BSD-3-Clause
// The libraries that rankmesh uses in this process.
#pragma once

#include <string>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// Describes a library that rankmesh uses. If the library was not found, `version` and `path` are
/// empty, and `why_not` gives the reason.
struct LibraryInfo {
  std::string name;
  std::string version;
  std::string path;
  std::string why_not;
};

/// Returns the descriptions of MPI, the CUDA runtime, the CUDA driver and NCCL, in this order.
/// Loads NCCL if it is installed. Local. Neither MPI_Init nor a device is needed.
RANKMESH_API std::vector<LibraryInfo> libraries();

}  // namespace rankmesh
