// SPDX-License-Identifier: BSD-3-Clause
// The last error of each thread, as the runtime keeps it.
#pragma once

#include <cuda_runtime_api.h>

namespace fake {

// Remembers a failure until cudaGetLastError takes it; success does not wipe it out.
cudaError_t record(cudaError_t error);

// cudaErrorNotReady is no error, so it is not kept ("CUDA Programming Guide", error checking).
// FAKE_CUDA_KEEP_NOT_READY=1 keeps it, as PyTorch and others expect of some versions of CUDA.
cudaError_t not_ready();

// What fake_cuda_fault has set.
cudaError_t device_fault();

}  // namespace fake
