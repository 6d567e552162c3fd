// SPDX-License-Identifier: BSD-3-Clause
// Says which rank writes a line.
#pragma once

#include <string>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Returns a prefix for the lines that this rank prints: its number and its coordinates, as in `[3
/// pp=0,dp=1,tp=1] `. The prefixes of all ranks have the same length if they have the same number
/// of digits in their coordinates; rank numbers with fewer digits begin with blanks. Local.
[[nodiscard]] RANKMESH_API std::string prefix(const Mesh& mesh);

/// Returns the text with prefix() before each of its lines. Local.
[[nodiscard]] RANKMESH_API std::string prefixed(const Mesh& mesh, std::string_view text);

}  // namespace rankmesh
