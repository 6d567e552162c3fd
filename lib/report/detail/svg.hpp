// SPDX-License-Identifier: BSD-3-Clause
// What pictures in SVG have in common.
#pragma once

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

}  // namespace rankmesh::report::detail
