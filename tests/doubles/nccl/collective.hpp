// SPDX-License-Identifier: BSD-3-Clause
// The collectives, each made of messages between all ranks and a local reduction.
#pragma once

#include "operation.hpp"

namespace fake {

Outcome run_collective(Comm& comm, const Operation& operation, std::uint64_t number);

}  // namespace fake
