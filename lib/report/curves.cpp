// SPDX-License-Identifier: BSD-3-Clause
// Collects the curves of a table. curves_draw.cpp draws them.
#include "report/curves.hpp"

#include <algorithm>
#include <cstddef>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/curves.hpp"

namespace rankmesh::report {
namespace {

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

std::string curves_svg(const Table& table, const CurveColumns& columns, const std::string& title) {
  std::vector<detail::Panel> panels;
  const std::size_t x = table.column(columns.x);
  for (const auto& row : table.rows) {
    if (number_of(row[x]) <= 0) continue;
    std::vector<std::string> parts;
    for (const std::string& part : columns.panel) parts.push_back(row[table.column(part)].text());
    for (const CurveColumns::Axis& axis : columns.y) {
      const double y = number_of(row[table.column(axis.column)]);
      if (y <= 0) continue;  // a logarithmic axis has no zero
      detail::Panel& panel =
          entry_of(panels, fmt::format("{}: {}", fmt::join(parts, " "), axis.title));
      const std::string curve = row[table.column(columns.curve)].text();
      entry_of(panel.curves, curve).points.emplace_back(number_of(row[x]), y);
    }
  }
  return detail::draw_panels(panels, columns.y.size(), title);
}

}  // namespace rankmesh::report
