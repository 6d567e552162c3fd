// SPDX-License-Identifier: BSD-3-Clause
// The source lines of calls, which addr2line finds.
#pragma once

#include "trace.hpp"

namespace rankmesh::meshinfo {

// Finds the lines of the program that made the last calls, and those that called their functions,
// where the records have these places. A line is `FILE:LINE`. Without debugging information it is
// `FUNCTION (FILE+OFFSET)`, and without symbols or addr2line, `FILE+OFFSET`.
void find_source_lines(Records& records);

}  // namespace rankmesh::meshinfo
