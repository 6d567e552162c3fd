// SPDX-License-Identifier: BSD-3-Clause
// Failures on order: from FAKE_NCCL_FAULTS and fake_nccl_inject.
#pragma once

#include "comm.hpp"

namespace fake {

Outcome injected_id_failure();                // "id"
Outcome injected_init_failure(Comm& comm);    // "late" sleeps, "init" fails
Outcome injected_window_failure(Comm& comm);  // "window"
Outcome injected_async_error(Comm& comm);     // "async": after so many operations
bool injected_hang(Comm& comm);               // "hang": the call waits inside NCCL for a peer

}  // namespace fake
