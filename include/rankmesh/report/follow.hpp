// SPDX-License-Identifier: BSD-3-Clause
// Reports what a running job does, on one screen.
#pragma once

#include <cstddef>
#include <span>

#include "rankmesh/export.hpp"
#include "rankmesh/record/record.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports what a job did between two readings of its records, with the schema `rankmesh.follow/1`.
/// The table has a row for each family: the calls and bytes per second of all its ranks together,
/// the share of time that a rank waited, and the rank that was last most often, with its host. The
/// families in which the ranks waited most come first. Below the table, the report lists the ranks
/// that have been in a call for the longest time.
///
/// record::activity_between() says which of these figures are exact. A figure that assumes
/// something about lost calls has a `~` in the text and `extrapolated` in JSON.
/// @param before      the earlier reading.
/// @param now         the later reading.
/// @param most_lines  the height of the screen. JSON and CSV have all families.
RANKMESH_API Document follow(std::span<const record::Record> before,
                             std::span<const record::Record> now, std::size_t most_lines = 24);

}  // namespace rankmesh::report
