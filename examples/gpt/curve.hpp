// SPDX-License-Identifier: BSD-3-Clause
// Draws losses over the steps as an SVG picture.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

/// Writes a picture with one curve, and under it, wider and paler, that of one process if it is not
/// empty. The loss axis begins at 0.
inline void draw_losses(const std::string& path, const std::vector<double>& losses,
                        const std::vector<double>& one_process, const std::string& title) {
  if (losses.empty()) return;
  constexpr double width = 640, height = 320, margin = 40;
  const double most = 1.05 * std::ranges::max(losses);
  const auto x = [&](std::size_t step) {
    return margin + (width - 2 * margin) * static_cast<double>(step) /
                        static_cast<double>(std::max<std::size_t>(losses.size() - 1, 1));
  };
  const auto y = [&](double loss) { return height - margin - (height - 2 * margin) * loss / most; };
  std::ofstream svg{path};
  svg << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << width << ' ' << height
      << "' font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' "
         "fill='white'/>\n<text x='"
      << margin << "' y='20'>" << title << "</text>\n";
  for (int loss = 0; loss < most; ++loss)
    svg << "<path d='M" << margin << ' ' << y(loss) << 'H' << width - margin
        << "' stroke='#ddd'/><text x='" << margin - 8 << "' y='" << y(loss) + 4
        << "' text-anchor='end'>" << loss << "</text>\n";
  const std::size_t every = std::max<std::size_t>((losses.size() + 4) / 5, 1);
  for (std::size_t step = 0; step < losses.size(); step += every)
    svg << "<text x='" << x(step) << "' y='" << height - margin + 18 << "' text-anchor='middle'>"
        << step + 1 << "</text>\n";
  const auto curve = [&](const std::vector<double>& values, const char* style) {
    svg << "<polyline fill='none' " << style << " points='";
    for (std::size_t step = 0; step < values.size(); ++step)
      svg << x(step) << ',' << y(values[step]) << ' ';
    svg << "'/>\n";
  };
  if (!one_process.empty())
    svg << "<text x='" << width - margin
        << "' y='20' text-anchor='end'>thin: this job, wide: one process</text>\n";
  curve(one_process, "stroke='#f4b183' stroke-width='6'");
  curve(losses, "stroke='#1f4e79' stroke-width='1.5'");
  svg << "</svg>\n";
}
