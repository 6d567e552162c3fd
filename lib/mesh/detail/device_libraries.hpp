// The CUDA runtime, the CUDA driver and NCCL as libraries. Built from device_libraries.cpp, or from
// no_device_side.cpp.
#pragma once

#include <vector>

#include "rankmesh/mesh/libraries.hpp"

namespace rankmesh::detail {

std::vector<LibraryInfo> device_libraries();

}  // namespace rankmesh::detail
