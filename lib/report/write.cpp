// SPDX-License-Identifier: BSD-3-Clause
#include "report/write.hpp"

#include <fmt/format.h>

#include "detail/picture.hpp"
#include "detail/writer.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::report {
namespace detail {
namespace {

void write_json(const Document& document, Writer& out) {
  // A document that lists groups is one line without blanks: it may be large.
  const bool is_compact = document.groups.has_value();
  out.text(is_compact ? "{\"schema\":" : "{\n  \"schema\": ");
  out.text(json_text(Json(document.schema)));
  // The fields follow in the same braces.
  Json with_lists = document.fields;
  for (const auto& [place, ranks] : document.lists) with_lists[place] = ranks;
  std::string fields = json_text(with_lists, is_compact ? -1 : 2);
  if (document.fields.empty()) fields = is_compact ? "{}" : "{\n}";
  if (!document.fields.empty()) out.character(',');
  out.text(std::string_view{fields}.substr(1, fields.size() - 2));
  if (is_compact) {
    out.text(",\"groups\":");
    write_group_lists(*document.groups, out);
  }
  out.text("}\n");
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

const Picture& required_picture(const Document& document) {
  if (document.picture) return *document.picture;
  throw UsageError{fmt::format("the report {} has no picture", document.schema),
                   "write it as text, JSON or CSV"};
}

}  // namespace

// Rows in the form of RFC 4180, with "\n" as the end of a line.
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

}  // namespace detail

void write(const Document& document, Format format, const Sink& sink, const TextStyle& style) {
  detail::Writer out{sink};
  switch (format) {
    case Format::text:
      detail::write_text(document, style, out);
      break;
    case Format::json:
      detail::write_json(document, out);
      break;
    case Format::csv:
      detail::write_csv(document, out);
      break;
    case Format::long_csv:
      document.groups ? detail::write_member_rows(*document.groups, document.of_ranks, out)
                      : detail::write_csv(document, out);
      break;
    case Format::svg:
      detail::write_svg(detail::required_picture(document), out);
      break;
    case Format::html:
      detail::write_picture_page(detail::required_picture(document), out);
      break;
  }
  out.flush();
}

std::string to_string(const Document& document, Format format, const TextStyle& style) {
  std::string text;
  write(
      document, format, [&](std::string_view piece) { text += piece; }, style);
  return text;
}

}  // namespace rankmesh::report
