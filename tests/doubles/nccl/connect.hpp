// SPDX-License-Identifier: BSD-3-Clause
// Connections between the ranks of a communicator, which the first use of an algorithm makes.
#pragma once

#include <vector>

#include "operation.hpp"

namespace fake {

// The algorithms of these operations that this communicator has not connected yet, as bits.
unsigned missing_connections(const Comm& comm, const std::vector<Operation>& operations);

// Waits until every rank has called, for each of the algorithms.
Outcome connect(Comm& comm, unsigned algorithms);

}  // namespace fake
