// SPDX-License-Identifier: BSD-3-Clause
// Finds rules that can never match.
#pragma once

#include <span>

#include "rankmesh/routes/route_table.hpp"

namespace rankmesh::detail {

/// Returns nothing if the last rule can match a call. Otherwise the rules before it match all of
/// its calls and always carry them, and the function returns the last of those that it needed to
/// see this: earlier rules may cover the sizes of the last rule together.
/// @param rules  at least one rule, in the order in which they are tried.
[[nodiscard]] const RouteRule* rule_that_hides_last(std::span<const RouteRule> rules);

}  // namespace rankmesh::detail
