// SPDX-License-Identifier: BSD-3-Clause
// The CUDA runtime, the CUDA driver and NCCL as libraries. The build compiles device_libraries.cpp,
// or no_device_libraries.cpp.
#pragma once

#include <vector>

#include "rankmesh/device/libraries.hpp"

namespace rankmesh::detail {

std::vector<LibraryInfo> device_libraries();
VisibleDevices visible_devices();

}  // namespace rankmesh::detail
