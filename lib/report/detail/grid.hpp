// The drawing of one view: a row per combination of the outer dimensions, a column per coordinate
// of the last.
#pragma once

#include <cstddef>
#include <string>

#include "rankmesh/layout/layout.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report::detail {

/// Lines that the drawing takes; 0 where the view is too large to be drawn.
std::size_t grid_lines(const Layout& view, const LiveFacts* live);
std::string grid_text(const Layout& view, const LiveFacts* live, bool colour);

}  // namespace rankmesh::report::detail
