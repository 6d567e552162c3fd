// SPDX-License-Identifier: BSD-3-Clause
// The colours and borders of a picture in SVG.
#pragma once

#include <cstddef>
#include <string>

namespace rankmesh::report::detail {

/// The number of colours, after which they repeat.
inline constexpr std::size_t svg_colours = 12;

/// Returns the element `<style>`, for light and dark backgrounds. Its classes are k0, k1, ...
/// (fill) and l0, l1, ... (stroke) for the colours; i and o for cells whose groups stay inside
/// their unit, or leave it (s: with a thin border); n for cells in no group; b for boxes; a for
/// links; h, f and t for titles, facts and texts in cells.
std::string svg_style();

}  // namespace rankmesh::report::detail
