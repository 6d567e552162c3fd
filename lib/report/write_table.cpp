// SPDX-License-Identifier: BSD-3-Clause
// Writes a table as text. A table that is wider than the terminal first gets narrower columns:
// texts are continued on further lines, and lists of ranks are shortened. If that is not enough,
// the remaining columns follow in a second table below the first one.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "detail/wrap.hpp"
#include "detail/writer.hpp"

namespace rankmesh::report::detail {
namespace {

using Row = std::vector<std::string>;
using Widths = std::vector<std::size_t>;

constexpr std::size_t gap = 2;                // blanks before every column
constexpr std::size_t least_rank_width = 20;  // of a list of ranks that is shortened
constexpr std::size_t least_text_width = 6;   // of a column with texts that are continued

// Whether all cells in the columns of levels 1 to `level` are equal to those in the row above.
bool repeats(const Table& table, const Row& row, const Row& above, int level) {
  for (std::size_t c = 0; c < row.size(); ++c)
    if (table.columns[c].level > 0 && table.columns[c].level <= level && row[c] != above[c])
      return false;
  return true;
}

bool is_in_text(const Table& table, std::size_t c) {
  return table.columns[c].forms == Table::Forms::all;
}

// Returns the text of a cell. Ranks that need more space are cut, and end in ",...".
std::string cell_within(const Table& table, std::size_t r, std::size_t c, std::size_t space) {
  const std::string text = table.rows[r][c].text(table.columns[c].most);
  return text.size() <= space ? text
                              : table.rows[r][c].text(space - std::min<std::size_t>(4, space));
}

// Returns the title line and the rows, as text that is not yet aligned.
// @param space  the number of characters for ranks in the cells of each column.
std::vector<Row> text_cells(const Table& table, std::size_t rows, const Widths& space) {
  std::vector<Row> lines(1);
  for (const Table::Column& column : table.columns) lines[0].push_back(column.title);
  Row above;
  for (std::size_t r = 0; r < rows; ++r) {
    Row row;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      row.push_back(is_in_text(table, c) ? cell_within(table, r, c, space[c]) : std::string{});
    lines.push_back(row);
    for (std::size_t c = 0; c < row.size() && r > 0; ++c)
      if (table.columns[c].level > 0 && repeats(table, row, above, table.columns[c].level))
        lines.back()[c].clear();
    above = std::move(row);
  }
  return lines;
}

Widths widths_of(const std::vector<Row>& lines) {
  Widths widths(lines.front().size());
  for (const Row& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  return widths;
}

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

bool has_ranks(const Table& table, std::size_t rows, std::size_t c) {
  return std::any_of(
      table.rows.begin(), table.rows.begin() + static_cast<std::ptrdiff_t>(rows),
      [&](const auto& row) { return std::holds_alternative<Ranks>(row[c].content); });
}

// Returns the widths below which the columns cannot be read.
Widths least_widths(const Table& table, std::size_t rows, const std::vector<Row>& lines) {
  Widths least(table.columns.size());
  for (std::size_t c = 0; c < least.size(); ++c) {
    const bool is_cut = has_ranks(table, rows, c);
    least[c] = is_cut ? least_rank_width : least_text_width;
    for (std::size_t line = 0; line < (is_cut ? 1 : lines.size()); ++line)
      least[c] = std::max(least[c], longest_word(lines[line][c]));
  }
  return least;
}

// Narrows the widest column repeatedly, until the table fits or no column can become narrower.
void narrow(const std::vector<std::size_t>& columns, const Widths& least, std::size_t space,
            Widths& widths) {
  std::size_t total = 0;
  for (const std::size_t c : columns) total += gap + widths[c];
  while (total > space) {
    const std::size_t* widest = nullptr;
    for (const std::size_t& c : columns)
      if (widths[c] > least[c] && (widest == nullptr || widths[c] > widths[*widest])) widest = &c;
    if (widest == nullptr) return;
    --widths[*widest];
    --total;
  }
}

// Returns the width of a column whose texts are continued on further lines.
std::size_t used_width(const std::vector<Row>& lines, std::size_t c, std::size_t width) {
  std::size_t used = 0;
  for (const Row& line : lines)
    for (const auto& [begin, end] : wrapped(line[c], width, 0)) used = std::max(used, end - begin);
  return used;
}

// Returns the columns of each table: all, or as many as fit behind the first column.
std::vector<std::vector<std::size_t>> blocks_of(const std::vector<std::size_t>& columns,
                                                const Widths& widths, std::size_t space) {
  std::vector<std::vector<std::size_t>> blocks;
  std::size_t total = 0;
  for (const std::size_t c : columns) {
    if (blocks.empty() || (total + gap + widths[c] > space && blocks.back().size() > 1)) {
      blocks.emplace_back();
      total = 0;
      if (c != columns.front()) {
        blocks.back().push_back(columns.front());
        total = gap + widths[columns.front()];
      }
    }
    blocks.back().push_back(c);
    total += gap + widths[c];
  }
  return blocks;
}

// Writes a row, on as many lines as its longest cell takes. No line ends in blanks.
void write_row(const Table& table, const std::vector<std::size_t>& columns, const Widths& widths,
               const Row& row, bool is_bold, Writer& out) {
  bool is_complete = false;
  for (std::size_t part = 0; !is_complete; ++part) {
    is_complete = true;
    std::string text;
    for (const std::size_t c : columns) {
      const auto parts = wrapped(row[c], widths[c], 0);
      is_complete = is_complete && part + 1 >= parts.size();
      const std::string cell =
          part < parts.size()
              ? row[c].substr(parts[part].first, parts[part].second - parts[part].first)
              : "";
      text += table.columns[c].align == Table::Align::left
                  ? fmt::format("{:{}}{:<{}}", "", gap, cell, widths[c])
                  : fmt::format("{:{}}{:>{}}", "", gap, cell, widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out.text(is_bold ? "\x1b[1m" + text + "\x1b[0m" : text);
    out.character('\n');
  }
}

}  // namespace

void write_table(const Table& table, std::size_t most_rows, const TextStyle& style, Writer& out) {
  const std::size_t rows = std::min(most_rows, table.rows.size());
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (is_in_text(table, c)) columns.push_back(c);
  Widths space(table.columns.size(), SIZE_MAX);
  std::vector<Row> lines = text_cells(table, rows, space);
  Widths widths = widths_of(lines);
  if (style.width != SIZE_MAX) {
    narrow(columns, least_widths(table, rows, lines), style.width, widths);
    for (const std::size_t c : columns)
      if (has_ranks(table, rows, c)) space[c] = widths[c];
    lines = text_cells(table, rows, space);
    for (const std::size_t c : columns) widths[c] = used_width(lines, c, widths[c]);
  }
  const bool has_titles =
      std::ranges::any_of(columns, [&](std::size_t c) { return !lines.front()[c].empty(); });
  for (const auto& block : blocks_of(columns, widths, style.width)) {
    if (block.front() == columns.front() && block.size() > 1 && block[1] != columns[1])
      out.character('\n');
    for (std::size_t line = has_titles ? 0 : 1; line < lines.size(); ++line)
      write_row(table, block, widths, lines[line], style.colour && line == 0, out);
  }
}

}  // namespace rankmesh::report::detail
