// SPDX-License-Identifier: BSD-3-Clause
// The drawing of one view: a row per combination of the outer dimensions, a column per coordinate
// of the last.
#pragma once

#include <cstddef>

#include "rankmesh/layout/layout.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report::detail {

/// Returns the lines that the drawing takes, or 0 if the view is too large to be drawn.
std::size_t grid_lines(const Layout& view, const LiveFacts* live);
/// Adds the drawing to the document's text.
void add_grid(const Layout& view, const LiveFacts* live, Document& document);

}  // namespace rankmesh::report::detail
