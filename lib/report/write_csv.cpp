// SPDX-License-Identifier: BSD-3-Clause
// Writes rows in the form of RFC 4180, with "\n" as the end of a line.
#include <string>
#include <string_view>
#include <vector>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted{"\""};
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + '"';
}

std::string csv_titles(const Table& table) {
  std::string line;
  for (const Table::Column& column : table.columns)
    if (column.forms != Table::Forms::json_only) line += ',' + csv_field(column.title);
  return line;
}

std::string csv_cells(const Table& table, const std::vector<Cell>& row) {
  std::string line;
  for (std::size_t c = 0; c < row.size(); ++c)
    if (table.columns[c].forms != Table::Forms::json_only) line += ',' + csv_field(row[c].text());
  return line;
}

void write_csv(const Document& document, Writer& out) {
  if (document.groups) return write_group_rows(*document.groups, out);
  const auto write = [&](const std::string& line) {
    out.text(std::string_view{line}.substr(line.empty() ? 0 : 1));
    out.character('\n');
  };
  write(csv_titles(document.table));
  for (const auto& row : document.table.rows) write(csv_cells(document.table, row));
}

}  // namespace rankmesh::report::detail
