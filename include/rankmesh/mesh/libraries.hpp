// What rankmesh stands on in this process.
#pragma once

#include <string>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// A library by version and file; both are empty where it was not found, and `why_not` says what
/// was looked for.
struct LibraryInfo {
  std::string name;
  std::string version;
  std::string path;
  std::string why_not;
};

/// MPI, the CUDA runtime, the CUDA driver and NCCL, in this order. Local; opens NCCL if it is
/// there; needs neither MPI_Init nor a device.
RANKMESH_API std::vector<LibraryInfo> libraries();

}  // namespace rankmesh
