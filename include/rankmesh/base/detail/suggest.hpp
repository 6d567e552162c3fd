// SPDX-License-Identifier: BSD-3-Clause
// Suggestions for words that are probably misspelt.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// Returns the candidate that is probably meant: the nearest one with at most two edits. The result
/// is empty if no candidate is near.
RANKMESH_API std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// Returns "<label>: a, b, c", preceded by "did you mean 'x'? " if the candidate `x` is near.
RANKMESH_API std::string suggest(std::string_view word, std::span<const std::string> candidates,
                                 std::string_view label);

}  // namespace rankmesh::detail
