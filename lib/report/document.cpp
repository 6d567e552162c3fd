// SPDX-License-Identifier: BSD-3-Clause
#include "report/document.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rankmesh::report {

std::string Cell::text(std::size_t most) const {
  if (const auto* ranks = std::get_if<Ranks>(&content))
    return ranks->set.to_string(std::min(most, ranks->most));
  const Json& value = std::get<Json>(content);
  if (value.is_null()) return {};
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.dump();
}

void Table::add_columns(std::initializer_list<std::string> titles, Align align) {
  for (const std::string& title : titles) columns.push_back({title, align});
}

std::size_t Table::column(std::string_view title) const {
  return static_cast<std::size_t>(std::ranges::find(columns, title, &Column::title) -
                                  columns.begin());
}

Json Table::objects(std::initializer_list<std::string_view> titles, std::size_t most) const {
  Json list = Json::array();
  for (const auto& row : rows) {
    if (list.size() == most) break;
    Json& object = list.emplace_back(Json::object());
    for (const std::string_view title : titles)
      std::visit([&](const auto& value) { object[std::string{title}] = value; },
                 row[column(title)].content);
  }
  return list;
}

void Document::add_line(const std::string& title, std::string_view words, std::size_t width) {
  add_bold(title);
  add(fmt::format("{:{}}{}\n", "", std::max(title.size() + 2, width) - title.size(), words));
}

void Document::add_fields(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto field = fields.find(name); field != fields.end())
      add_line(name, field->get_ref<const std::string&>(), title_width);
}

void Document::add_table(std::size_t most_rows, std::size_t all, std::string_view what) {
  text.emplace_back(TableHere{most_rows});
  if (all > most_rows) add(fmt::format("  ... and {} more {}\n", all - most_rows, what));
}

}  // namespace rankmesh::report
