// SPDX-License-Identifier: BSD-3-Clause
#include "detail/svg.hpp"

#include <array>

#include <fmt/format.h>

namespace rankmesh::report {
namespace {

// Light fills below dark texts, or the reverse. The legend says that the colours repeat.
constexpr std::array<int, detail::svg_colours> hue_of{212, 28, 145, 325, 48,  190,
                                                      265, 95, 0,   170, 300, 235};

}  // namespace

std::string detail::svg_style() {
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

}  // namespace rankmesh::report
