// SPDX-License-Identifier: BSD-3-Clause
// Finds rules that can never match.
#pragma once

#include <span>

#include "rankmesh/routes/route_table.hpp"

namespace rankmesh::detail {

/// Returns nothing if the last rule can match a call. Otherwise the earlier rules match all of its
/// calls, and their transports always carry these calls. Several earlier rules may cover the sizes
/// of the last rule together; the function returns the last one of them.
/// @param rules  at least one rule, in the order in which they are tried.
[[nodiscard]] const RouteRule* rule_that_hides_last(std::span<const RouteRule> rules);

}  // namespace rankmesh::detail
