// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace fake {

// Writes the lines of NCCL's log that tell what it chose, if NCCL_DEBUG=INFO and NCCL_DEBUG_FILE
// are set. Called when a communicator is ready; only the first one writes.
void write_log(int rank, int device);

}  // namespace fake
