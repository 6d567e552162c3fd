// SPDX-License-Identifier: BSD-3-Clause
// The drawing of one view: a row per combination of the outer dimensions, a column per coordinate
// of the last.
#pragma once

#include <cstddef>

#include "rankmesh/layout/layout.hpp"
#include "report/document.hpp"
#include "report/live_facts.hpp"

namespace rankmesh::report::detail {

/// A grid that would be wider is not drawn.
inline constexpr std::size_t max_grid_width = 120;

/// Returns the lines that the drawing takes, or 0 if the view is too large to be drawn.
/// @param width  of the terminal. A wider grid is divided: its columns continue below it.
std::size_t grid_lines(const Layout& view, const LiveFacts* live, std::size_t width);
/// Adds the drawing to the document's text.
void add_grid(const Layout& view, const LiveFacts* live, std::size_t width, Document& document);

}  // namespace rankmesh::report::detail
