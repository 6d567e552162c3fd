// SPDX-License-Identifier: BSD-3-Clause
// The places of groups on a machine, as cells and texts.
#pragma once

#include <string>
#include <vector>

#include "rankmesh/place/spread.hpp"
#include "report/document.hpp"

namespace rankmesh::report::detail {

/// Returns the numbers of the split groups, for example `0-7,12`; empty if no group is split.
std::string split_text(const LevelSpread& spread, std::int64_t groups);

/// Returns the spread over all levels as a JSON object.
Json spread_json(const Machine& machine, const std::vector<LevelSpread>& spreads,
                 std::int64_t groups);

}  // namespace rankmesh::report::detail
