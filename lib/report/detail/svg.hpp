// SPDX-License-Identifier: BSD-3-Clause
// What pictures in SVG have in common.
#pragma once

#include <cstddef>
#include <string>

namespace rankmesh::report::detail {

inline constexpr std::size_t svg_colours = 12;  ///< after which they repeat
inline constexpr double svg_width = 1180, svg_margin = 18, svg_line_height = 17;

/// Returns a text for SVG: it cannot become markup or end an attribute, and control characters
/// become blanks.
std::string escaped(const std::string& text);

/// Returns the shortest text of at most `most` characters; a longer one is cut.
std::string shortened(const std::string& text, std::size_t most);

/// Returns the begin of a picture, which is up to its style for light and dark backgrounds. The
/// classes are k0, k1, ... (fill) and l0, l1, ... (stroke) for the colours; i for cells, o for
/// those that stand out (s: with a thin border); n for cells without a colour; b for boxes; a for
/// lines; h, f and t for titles, facts and texts in cells.
std::string svg_begin(double width, double height, const std::string& title);

/// Returns a line of text.
/// @param kind  its class, or an empty text.
std::string svg_line(double x, double y, const std::string& kind, const std::string& text,
                     int size = 12);

/// Returns a rectangle.
std::string svg_box(const std::string& kind, double x, double y, double width, double height,
                    int radius = 0);

}  // namespace rankmesh::report::detail
