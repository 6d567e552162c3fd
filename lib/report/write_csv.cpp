// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted{"\""};
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + '"';
}

// Writes a header and the rows in the form of RFC 4180, with "\n" as the end of a line.
void write_csv(const Document& document, Writer& out) {
  if (document.groups) return write_group_rows(*document.groups, out);
  const char* separator = "";
  for (const Table::Column& column : document.table.columns) {
    out.text(separator);
    out.text(csv_field(column.title));
    separator = ",";
  }
  out.character('\n');
  for (const auto& row : document.table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) out.character(',');
      out.text(csv_field(cell_text(row[c], SIZE_MAX)));
    }
    out.character('\n');
  }
}

}  // namespace rankmesh::report::detail
