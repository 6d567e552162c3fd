// SPDX-License-Identifier: BSD-3-Clause
// Breaks lines that are wider than a terminal.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace rankmesh::report::detail {

/// Returns the parts of a line that fit into the width, as pairs of begin and end. Lines are broken
/// at blanks only, so a word that is longer than the width gets a longer line.
/// @param indent  the blanks in front of every part except the first one.
inline std::vector<std::pair<std::size_t, std::size_t>> wrapped(std::string_view line,
                                                                std::size_t width,
                                                                std::size_t indent) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t space = begin == 0 ? width : width - indent;
    if (line.size() - begin <= space) break;
    // The line is not broken at the blanks in front of the first word.
    const std::size_t first_word = line.find_first_not_of(' ', begin);
    if (first_word == std::string_view::npos) break;
    std::size_t end = line.rfind(' ', begin + space);
    if (end == std::string_view::npos || end < first_word) end = line.find(' ', first_word);
    if (end == std::string_view::npos) break;
    const std::size_t next = line.find_first_not_of(' ', end);
    if (next == std::string_view::npos) break;
    parts.emplace_back(begin, line.find_last_not_of(' ', end) + 1);
    begin = next;
  }
  parts.emplace_back(begin, line.size());
  return parts;
}

/// Returns the indent of the lines that continue a line: the column behind its first gap of two
/// blanks or more, or two blanks more than the line has itself.
inline std::size_t continuation_indent(std::string_view line, std::size_t width) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return 0;
  const std::size_t gap = line.find("  ", begin);
  const std::size_t text = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  if (text != std::string_view::npos && text <= width / 2) return text;
  return begin + 2 <= width / 2 ? begin + 2 : 0;
}

}  // namespace rankmesh::report::detail
