// SPDX-License-Identifier: BSD-3-Clause
// Progress that every wait makes, regardless of what it waits for.
#pragma once

namespace rankmesh::detail {

/// Calls the function that set_progress_in_waits() has set, if there is one. Every wait calls it
/// at each poll.
void progress_in_waits();

/// Sets the function. The layer of the groups calls this function, because this layer does not know
/// operations.
void set_progress_in_waits(void (*progress)()) noexcept;

}  // namespace rankmesh::detail
