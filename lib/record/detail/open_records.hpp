// SPDX-License-Identifier: BSD-3-Clause
// The records that this process has open, for a signal handler.
#pragma once

#include "rankmesh/record/format.hpp"

namespace rankmesh::detail {

/// Adds a record to those that a signal writes. If there are too many, it is not written.
void add_open_record(const record::format::Header& header);
/// Removes a record. When the function returns, no signal handler reads it any more.
void remove_open_record(const record::format::Header& header);

}  // namespace rankmesh::detail
