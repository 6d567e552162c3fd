// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {

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

}  // namespace rankmesh::report::detail
