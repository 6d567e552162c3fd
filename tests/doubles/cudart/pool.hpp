// SPDX-License-Identifier: BSD-3-Clause
// Pools of memory that is allocated and freed in stream order.
#pragma once

#include <cuda_runtime_api.h>

namespace fake {

// cudaFree may free memory of a pool too. Returns whether the memory came from a pool.
bool forget_pooled(void* pointer);
// After a stream, an event or the device was synchronised, a pool gives back what it does not use,
// as far as it holds more than its release threshold.
void shrink_pools();
long long pool_growths();

// Whether the stream is being captured.
bool capturing(cudaStream_t handle);

}  // namespace fake
