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
  const Table& table = document.table;
  const auto write_line = [&](auto&& text_of) {
    std::vector<std::string> fields;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (table.columns[c].forms != Table::Forms::json_only)
        fields.push_back(csv_field(text_of(c)));
    out.text(fmt::format("{}\n", fmt::join(fields, ",")));
  };
  write_line([&](std::size_t c) { return table.columns[c].title; });
  for (const auto& row : table.rows) write_line([&](std::size_t c) { return row[c].text(); });
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
    case Format::svg:
      detail::write_svg(detail::required_picture(document), out);
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
