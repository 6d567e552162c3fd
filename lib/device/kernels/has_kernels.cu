// SPDX-License-Identifier: BSD-3-Clause
#include "base/detail/private_api.hpp"
#include "device/kernels/load.hpp"

namespace rankmesh::device {

RANKMESH_PRIVATE_API bool has_kernels() noexcept { return true; }

}  // namespace rankmesh::device
