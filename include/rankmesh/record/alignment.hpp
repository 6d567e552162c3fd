// SPDX-License-Identifier: BSD-3-Clause
// Refines the clocks of nodes by what the records say.
#pragma once

#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// Refines the clocks of nodes: no member leaves a collective before the last member has begun it,
/// and no message is received before it was sent. The function shifts all times of a node together,
/// by at most Record::clock_error. Node 0 stays.
///
/// The collectives that count are those for which synchronises() is true, and messages count if
/// they are certain (see Matching::messages()). A time that is missing constrains nothing. A begin
/// may have been taken when a rank noticed that it has to wait, which can be after the others have
/// come. Unless Record::has_all_times is true, a begin therefore counts only if the call lasted at
/// least 10 us longer.
///
/// Of all shifts that satisfy the constraints, the function chooses those whose largest share of
/// the node's clock error is smallest, and then moves each node as close to its original clock as
/// the other nodes permit. The constraints also bound the remaining error, so Record::clock_error
/// becomes smaller.
///
/// If the constraints contradict each other, the records are returned unchanged and `remarks` says
/// so.
///
/// With C calls and N nodes, this takes O(C log C) time to find the collectives, O(m^2) for each
/// collective between m nodes, and O(N^3) to solve the constraints; it takes O(C + N^2) memory.
/// @param records  of one mesh.
/// @param remarks  receives a sentence for each node whose clock was shifted by at least 1 us, or
/// the reason why no clock was shifted. May be null.
[[nodiscard]] RANKMESH_API std::vector<Record> align(std::vector<Record> records,
                                                     std::vector<std::string>* remarks = nullptr);

}  // namespace rankmesh::record
