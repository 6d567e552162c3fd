// SPDX-License-Identifier: BSD-3-Clause
// How the ranks that hold the same unique ID find each other. Whoever makes an ID becomes its
// root: a thread on a socket that checks each rank, hands out the shared segment, and ends when
// all have come.
#pragma once

#include <nccl.h>

#include <memory>

#include "seat.hpp"

namespace fake {

// Makes an ID and starts its root in this process. NCCL_COMM_ID rules what users get.
enum class IdKind { of_user, of_child };
Outcome make_unique_id(ncclUniqueId& id, IdKind kind);

// The ID that everyone gets while NCCL_COMM_ID is set; rank 0 starts its root when it inits.
bool id_is_from_environment(const ncclUniqueId& id);

// Takes this rank's seat at the first ID, having checked in at the one that its block of ranks
// belongs to, and waits until all ranks have come.
Outcome take_seat(Seat& seat, const ncclUniqueId* ids, int count, int device);

long live_roots();

}  // namespace fake
