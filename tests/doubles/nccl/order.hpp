// SPDX-License-Identifier: BSD-3-Clause
// In which order a group's operations are carried out, and which of them have no order at all.
#pragma once

#include <utility>
#include <vector>

#include "operation.hpp"

namespace fake {

// The operations of one group by communicator, in the order of first use.
using Batches = std::vector<std::pair<CommPtr, std::vector<Operation>>>;

// Arranges the operations as NCCL does, and marks those whose result depends on the order.
void arrange(Batches& batches);

}  // namespace fake
