// SPDX-License-Identifier: BSD-3-Clause
// Prints from one rank, or from all ranks in order.
#pragma once

#include <ostream>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Prints a line on one rank; does nothing on all other ranks. Local, so any number of ranks may
/// call it. The line is flushed.
/// @param text  The line. A newline is added unless the text ends with one.
/// @param from  The rank that prints.
/// @throws UsageError on all callers if `mesh` has no rank `from`.
RANKMESH_API void print_once(const Mesh& mesh, std::string_view text, Rank from = 0);
RANKMESH_API void print_once(std::ostream& out, const Mesh& mesh, std::string_view text,
                             Rank from = 0);

/// Prints the texts of all ranks in the order of their numbers, each line with prefix(). Rank 0
/// gathers and prints them, because a launcher mixes the lines of different processes. Collective
/// over all ranks; blocks. Cost: a gather_v. Rank 0 holds all texts at once.
///
/// The ranks are those of `mesh["world"]`. If the mesh has a family with the name `world`, the
/// first member of each group of this family prints the texts of its group.
/// @param text  One or more lines. The text of a rank may be empty; then nothing is printed for it.
RANKMESH_API void print_in_order(Mesh& mesh, std::string_view text);
RANKMESH_API void print_in_order(std::ostream& out, Mesh& mesh, std::string_view text);

/// Prints the texts of all members of a group in group order, on the first member and without
/// prefixes. Collective over the group; blocks. See prefixed() for texts with prefixes.
RANKMESH_API void print_in_order(GroupCoordinator& group, std::string_view text);
RANKMESH_API void print_in_order(std::ostream& out, GroupCoordinator& group, std::string_view text);

}  // namespace rankmesh
