// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {
namespace {

using Row = std::vector<std::string>;

std::string bold(const std::string& text, bool colour) {
  return colour ? "\x1b[1m" + text + "\x1b[0m" : text;
}

std::vector<std::size_t> text_columns(const Table& table) {
  std::vector<std::size_t> result;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].forms == Table::Forms::all) result.push_back(c);
  return result;
}

// Whether all cells in the columns of levels 1 to `level` are equal to those in the row above.
bool repeats(const Table& table, const Row& row, const Row& above, int level) {
  for (std::size_t c = 0; c < row.size(); ++c)
    if (table.columns[c].level > 0 && table.columns[c].level <= level && row[c] != above[c])
      return false;
  return true;
}

// The title line and the rows, as text that is not yet aligned.
std::vector<Row> text_cells(const Table& table, std::size_t most_rows) {
  std::vector<Row> lines(1);
  for (const Table::Column& column : table.columns) lines[0].push_back(column.title);
  Row above;
  for (std::size_t r = 0; r < std::min(most_rows, table.rows.size()); ++r) {
    Row row;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      row.push_back(table.columns[c].forms == Table::Forms::all
                        ? cell_text(table.rows[r][c], table.columns[c].most)
                        : std::string{});
    lines.push_back(row);
    for (std::size_t c = 0; c < row.size() && r > 0; ++c)
      if (table.columns[c].level > 0 && repeats(table, row, above, table.columns[c].level))
        lines.back()[c].clear();
    above = std::move(row);
  }
  return lines;
}

// Two blanks before every column, none at the end of a line.
void write_table(const Table& table, std::size_t most_rows, bool colour, Writer& out) {
  const std::vector<std::size_t> columns = text_columns(table);
  const std::vector<Row> lines = text_cells(table, most_rows);
  std::vector<std::size_t> widths(table.columns.size());
  for (const Row& line : lines)
    for (const std::size_t c : columns) widths[c] = std::max(widths[c], line[c].size());
  for (const Row& line : lines) {
    std::string text;
    for (const std::size_t c : columns)
      text += table.columns[c].align == Table::Align::left
                  ? fmt::format("  {:<{}}", line[c], widths[c])
                  : fmt::format("  {:>{}}", line[c], widths[c]);
    text.erase(text.find_last_not_of(' ') + 1);
    out.text(bold(text, colour && &line == &lines.front()));
    out.character('\n');
  }
}

}  // namespace

void write_text(const Document& document, bool colour, Writer& out) {
  for (const auto& piece : document.text) {
    if (const auto* span = std::get_if<Span>(&piece))
      out.text(bold(span->text, colour && span->is_bold));
    else if (const auto* table = std::get_if<Table>(&piece))
      write_table(*table, SIZE_MAX, colour, out);
    else
      write_table(document.table, std::get<TableHere>(piece).most_rows, colour, out);
  }
  if (document.groups) write_group_lines(*document.groups, out);
}

}  // namespace rankmesh::report::detail
