// SPDX-License-Identifier: BSD-3-Clause
// Carries operations out: on the stream's thread, in the order of issue of their communicator.
#pragma once

#include <vector>

#include "operation.hpp"

namespace fake {

// Puts a batch (of one call, or of one group) on its stream.
Outcome launch(const CommPtr& comm, std::vector<Operation> operations);

}  // namespace fake
