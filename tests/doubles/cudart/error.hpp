// SPDX-License-Identifier: BSD-3-Clause
// The last error of each thread, as the runtime keeps it.
#pragma once

#include <cuda_runtime_api.h>

namespace fake {

// Remembers a failure until cudaGetLastError takes it; success does not wipe it out.
cudaError_t record(cudaError_t error);

}  // namespace fake
