// SPDX-License-Identifier: BSD-3-Clause
// Collects the curves of a table. curves_draw.cpp draws them.
#include "rankmesh/report/curves.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/curves.hpp"
#include "detail/writer.hpp"

namespace rankmesh::report {
namespace {

std::size_t column_of(const Table& table, const std::string& title) {
  const auto found = std::ranges::find(table.columns, title, &Table::Column::title);
  return static_cast<std::size_t>(found - table.columns.begin());
}

double number_of(const Value& value) {
  if (const auto* whole = value.get_if<std::int64_t>()) return static_cast<double>(*whole);
  const auto* number = value.get_if<double>();
  return number == nullptr ? 0 : *number;
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
  const std::size_t x = column_of(table, columns.x);
  for (const auto& row : table.rows) {
    if (number_of(row[x]) <= 0) continue;
    std::vector<std::string> parts;
    for (const std::string& part : columns.panel)
      parts.push_back(detail::cell_text(row[column_of(table, part)], SIZE_MAX));
    for (const CurveColumns::Axis& axis : columns.y) {
      const double y = number_of(row[column_of(table, axis.column)]);
      if (y <= 0) continue;  // a logarithmic axis has no zero
      detail::Panel& panel =
          entry_of(panels, fmt::format("{}: {}", fmt::join(parts, " "), axis.title));
      const std::string curve = detail::cell_text(row[column_of(table, columns.curve)], SIZE_MAX);
      entry_of(panel.curves, curve).points.emplace_back(number_of(row[x]), y);
    }
  }
  return detail::draw_panels(panels, columns.y.size(), title);
}

}  // namespace rankmesh::report
