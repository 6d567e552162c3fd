// SPDX-License-Identifier: BSD-3-Clause
// What pictures in SVG have in common: texts, colours and borders.
#pragma once

#include <cstddef>
#include <string>

namespace rankmesh::report::detail {

/// Returns a text for SVG: it cannot become markup or end an attribute, and control characters
/// become blanks.
inline std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result;
}

/// The number of colours, after which they repeat.
inline constexpr std::size_t svg_colours = 12;

/// Returns the element `<style>`, for light and dark backgrounds. Its classes are k0, k1, ...
/// (fill) and l0, l1, ... (stroke) for the colours; i and o for cells whose groups stay inside
/// their unit, or leave it (s: with a thin border); n for cells in no group; b for boxes; a for
/// links; h, f and t for titles, facts and texts in cells.
std::string svg_style();

}  // namespace rankmesh::report::detail
