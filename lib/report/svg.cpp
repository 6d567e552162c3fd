// SPDX-License-Identifier: BSD-3-Clause
#include "detail/svg.hpp"

#include <array>

#include <fmt/format.h>

namespace rankmesh::report::detail {
namespace {

// Light fills below dark texts, or the reverse. The legends say that the colours repeat.
constexpr std::array<int, svg_colours> hue_of{212, 28, 145, 325, 48,  190,
                                              265, 95, 0,   170, 300, 235};

std::string style() {
  std::string light;
  std::string dark;
  for (std::size_t c = 0; c < svg_colours; ++c) {
    light += fmt::format(".k{0}{{fill:hsl({1},70%,{2}%)}}.l{0}{{stroke:hsl({1},75%,38%)}}", c,
                         hue_of[c], c % 2 == 0 ? 80 : 74);
    dark += fmt::format(".k{0}{{fill:hsl({1},45%,{2}%)}}.l{0}{{stroke:hsl({1},70%,68%)}}", c,
                        hue_of[c], c % 2 == 0 ? 30 : 36);
  }
  return fmt::format(
      "<style>svg{{background:#fff;font:12px sans-serif;fill:#1c2430}}.h{{font-weight:bold}}"
      ".f{{fill:#5d6878}}.b{{fill:none;stroke:#9aa3b0}}.n{{fill:#eceef1}}"
      ".i{{stroke:#1c2430;stroke-opacity:.35}}"
      ".o{{stroke:#b3261e;stroke-width:2;stroke-dasharray:4 2}}"
      ".t{{text-anchor:middle;font-size:11px}}.s{{stroke-width:1;stroke-dasharray:none}}.a{{fill:"
      "none;stroke-width:1.4;opacity:.75}}{}"
      "@media(prefers-color-scheme:dark){{svg{{background:#14171c;fill:#e4e8ee}}.f{{fill:#9aa5b4}}"
      ".b{{stroke:#5b6675}}.n{{fill:#232932}}.i{{stroke:#e4e8ee}}.o{{stroke:#ff8a80}}{}}}"
      "</style>\n",
      light, dark);
}

}  // namespace

std::string escaped(const std::string& text) {
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

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // UTF-8
  return text.substr(0, end) + "...";
}

std::string svg_begin(double width, double height, const std::string& title) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"group\" aria-label=\"{2}\">\n"
             "<title>{2}</title>\n",
             width, height, escaped(shortened(title, 200))) +
         style();
}

std::string svg_line(double x, double y, const std::string& kind, const std::string& text,
                     int size) {
  return fmt::format("<text{} x=\"{:.0f}\" y=\"{:.0f}\"{}>{}</text>\n",
                     kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), x, y,
                     size == 12 ? "" : fmt::format(" font-size=\"{}\"", size), escaped(text));
}

std::string svg_box(const std::string& kind, double x, double y, double width, double height,
                    int radius) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\"{}/>",
      kind, x, y, width, height, radius == 0 ? "" : fmt::format(" rx=\"{}\"", radius));
}

}  // namespace rankmesh::report::detail
