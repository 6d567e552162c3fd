// SPDX-License-Identifier: BSD-3-Clause
// Pairs sends with receives, see Matching::messages().
#pragma once

#include <span>
#include <vector>

#include "record/matching.hpp"

namespace rankmesh::record::detail {

/// Returns the messages of the records.
/// @param matching  knows the meetings already.
std::vector<Message> match_messages(std::span<const Record> records, const Matching& matching);

}  // namespace rankmesh::record::detail
