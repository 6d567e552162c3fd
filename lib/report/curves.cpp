// SPDX-License-Identifier: BSD-3-Clause
// Collects the curves of a table, and draws them.
#include "report/curves.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/svg.hpp"

namespace rankmesh::report {
namespace detail {
namespace {

struct Curve {
  std::string title{};
  std::vector<std::pair<double, double>> points{};  ///< positive numbers
};

struct CurvePanel {
  std::string title{};
  std::vector<Curve> curves{};
};

// In pixels. The frame of a panel is the rectangle that holds its curves.
constexpr double panel_width = 460, panel_height = 280;
constexpr double margin_left = 62, margin_right = 16, top = 34, bottom = 62;
constexpr double title_height = 40;
constexpr double frame_width = panel_width - margin_left - margin_right;
constexpr double frame_height = panel_height - top - bottom;

// Colours of Okabe and Ito, which people with any colour vision can tell apart.
constexpr std::array colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                "#e69f00", "#56b4e9", "#8a6d00", "#7f7f7f"};

// A logarithmic axis from one power of `base` to another one.
struct Axis {
  double base;
  int first = 0, last = 0;
  int step = 1;  // from one tick to the next

  [[nodiscard]] double place(double value) const {  // 0 to 1
    return (std::log(value) / std::log(base) - first) / (last - first);
  }
};

Axis axis_of(double base, double least, double most, int most_ticks) {
  Axis axis{base};
  axis.first = static_cast<int>(std::floor(std::log(least) / std::log(base) + 1e-9));
  axis.last = static_cast<int>(std::ceil(std::log(most) / std::log(base) - 1e-9));
  if (axis.last == axis.first) ++axis.last;
  axis.step = (axis.last - axis.first + most_ticks - 1) / most_ticks;
  return axis;
}

std::string size_label(int power) {
  constexpr std::array units = {"B", "K", "M", "G", "T", "P"};
  const auto unit = static_cast<std::size_t>(std::clamp(power / 10, 0, 5));
  return fmt::format("{}{}{}", 1LL << std::clamp(power - static_cast<int>(unit) * 10, 0, 30),
                     unit == 0 ? " " : "", units[unit]);
}

std::string number_label(int power) { return fmt::format("{:g}", std::pow(10.0, power)); }

std::string draw_axes(const Axis& x, const Axis& y) {
  std::string text =
      fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                  margin_left, top, frame_width, frame_height);
  for (int power = x.first; power <= x.last; power += x.step) {
    const double at = margin_left + frame_width * x.place(std::pow(x.base, power));
    text += fmt::format(
        "<path class=\"tick\" d=\"M{0:.1f} {1}v{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        at, top, frame_height, top + frame_height + 16, size_label(power));
  }
  for (int power = y.first; power <= y.last; power += y.step) {
    const double at = top + frame_height * (1 - y.place(std::pow(y.base, power)));
    text += fmt::format(
        "<path class=\"tick\" d=\"M{0} {1:.1f}h{2}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        margin_left, at, frame_width, margin_left - 6, at + 4, number_label(power));
  }
  return text;
}

// A line with a dot at every measurement, whose values are shown under the pointer.
std::string draw_curve(const Curve& curve, std::size_t number, const char* colour, const Axis& x,
                       const Axis& y) {
  std::string line, dots;
  for (const auto& [size, value] : curve.points) {
    const double px = margin_left + frame_width * x.place(size);
    const double py = top + frame_height * (1 - y.place(value));
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", px, py);
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"><title>{}: {:.0f} bytes, "
        "{:.4g}</title></circle>",
        px, py, colour, escaped(curve.title), size, value);
  }
  const double place = margin_left + 8 + 110 * static_cast<double>(number % 4);
  const double under = top + frame_height + 34 + 15 * static_cast<double>(number / 4);
  return fmt::format(
      "<path class=\"curve\" stroke=\"{0}\" d=\"{1}\"/>{2}\n"
      "<path class=\"curve\" stroke=\"{0}\" d=\"M{3} {4}h16\"/><text x=\"{5}\" y=\"{6}\">{7}"
      "</text>\n",
      colour, line, dots, place, under, place + 21, under + 4, escaped(curve.title));
}

// A curve has the same colour in every panel.
const char* colour_of(const Curve& curve, std::vector<std::string>& titles) {
  auto found = std::ranges::find(titles, curve.title);
  if (found == titles.end()) found = titles.insert(titles.end(), curve.title);
  return colours[static_cast<std::size_t>(found - titles.begin()) % colours.size()];
}

std::string draw_panel(const CurvePanel& panel, double x0, double y0,
                       std::vector<std::string>& titles) {
  constexpr double none = std::numeric_limits<double>::infinity();
  double least_x = none, most_x = 0, least_y = none, most_y = 0;
  for (const Curve& curve : panel.curves)
    for (const auto& [x, y] : curve.points) {
      least_x = std::min(least_x, x);
      most_x = std::max(most_x, x);
      least_y = std::min(least_y, y);
      most_y = std::max(most_y, y);
    }
  const Axis x = axis_of(2, least_x, most_x, 8);
  const Axis y = axis_of(10, least_y, most_y, 6);
  std::string text = fmt::format(
      "<g transform=\"translate({} {})\">\n<text class=\"head\" x=\"{}\" y=\"{}\">{}"
      "</text>\n",
      x0, y0, margin_left, top - 10, escaped(panel.title));
  text += draw_axes(x, y);
  for (std::size_t c = 0; c < panel.curves.size(); ++c)
    text += draw_curve(panel.curves[c], c, colour_of(panel.curves[c], titles), x, y);
  return text + "</g>\n";
}

std::string draw_panels(const std::vector<CurvePanel>& panels, std::size_t in_row,
                        const std::string& title) {
  const auto rows = static_cast<double>((panels.size() + in_row - 1) / in_row);
  const double width = panel_width * static_cast<double>(in_row);
  const double height = title_height + panel_height * rows;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<title>{2}</title>\n",
      width, height, escaped(title));
  text +=
      "<style>svg{background:#fff;font:12px sans-serif;fill:#222}.head{font-weight:bold}"
      ".frame{fill:none;stroke:#888}.tick{stroke:#888;stroke-opacity:.25}"
      ".curve{fill:none;stroke-width:1.8}"
      "@media(prefers-color-scheme:dark){svg{background:#1b1b1b;fill:#ddd}}</style>\n";
  text += fmt::format("<text class=\"head\" x=\"16\" y=\"26\" font-size=\"15\">{}</text>\n",
                      escaped(title));
  std::vector<std::string> titles;  // of all curves, in the order of their colours
  for (std::size_t p = 0; p < panels.size(); ++p)
    text += draw_panel(panels[p], panel_width * static_cast<double>(p % in_row),
                       title_height + panel_height * static_cast<double>(p / in_row), titles);
  return text + "</svg>\n";
}

double number_of(const Cell& cell) {
  const auto* value = std::get_if<Json>(&cell.content);
  return value != nullptr && value->is_number() ? value->get<double>() : 0;
}

// Returns the entry of this title, and adds it if there is none.
template <class Entry>
Entry& entry_of(std::vector<Entry>& entries, const std::string& title) {
  const auto found = std::ranges::find(entries, title, &Entry::title);
  if (found != entries.end()) return *found;
  entries.emplace_back().title = title;
  return entries.back();
}

}  // namespace
}  // namespace detail

std::string curves_svg(const Table& table, const CurveColumns& columns, const std::string& title) {
  std::vector<detail::CurvePanel> panels;
  const std::size_t x = table.column(columns.x);
  for (const auto& row : table.rows) {
    if (detail::number_of(row[x]) <= 0) continue;
    std::vector<std::string> parts;
    for (const std::string& part : columns.panel) parts.push_back(row[table.column(part)].text());
    for (const CurveColumns::Axis& axis : columns.y) {
      const double y = detail::number_of(row[table.column(axis.column)]);
      if (y <= 0) continue;  // a logarithmic axis has no zero
      detail::CurvePanel& panel =
          detail::entry_of(panels, fmt::format("{}: {}", fmt::join(parts, " "), axis.title));
      const std::string curve = row[table.column(columns.curve)].text();
      detail::entry_of(panel.curves, curve).points.emplace_back(detail::number_of(row[x]), y);
    }
  }
  return detail::draw_panels(panels, columns.y.size(), title);
}

}  // namespace rankmesh::report
