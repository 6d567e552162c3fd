// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include <nlohmann/json.hpp>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

constexpr std::size_t json_indent = 2;

void break_line(std::size_t depth, Writer& out) {
  out.character('\n');
  out.text(std::string(depth * json_indent, ' '));
}

void write_value(const Value& value, std::size_t depth, Writer& out);

void write_list(const Value::List& items, std::size_t depth, Writer& out) {
  out.character('[');
  for (const Value& item : items) {
    if (&item != &items.front()) out.character(',');
    break_line(depth + 1, out);
    write_value(item, depth + 1, out);
  }
  if (!items.empty()) break_line(depth, out);
  out.character(']');
}

void write_field(const std::string& key, const Value& value, std::size_t depth, Writer& out) {
  break_line(depth + 1, out);
  out.text(json_string(key));
  out.text(": ");
  write_value(value, depth + 1, out);
}

void write_object(const Value::Object& object, std::size_t depth, Writer& out) {
  out.character('{');
  for (std::size_t i = 0; i < object.keys.size(); ++i) {
    if (i > 0) out.character(',');
    write_field(object.keys[i], object.values[i], depth, out);
  }
  if (!object.keys.empty()) break_line(depth, out);
  out.character('}');
}

void write_value(const Value& value, std::size_t depth, Writer& out) {
  if (const auto* list = value.get_if<Value::List>())
    write_list(*list, depth, out);
  else if (const auto* object = value.get_if<Value::Object>())
    write_object(*object, depth, out);
  else if (value.is_null())
    out.text("null");
  else if (value.get_if<std::string>() != nullptr || value.get_if<Ranks>() != nullptr)
    out.text(json_string(cell_text(value, SIZE_MAX)));
  else if (const auto* number = value.get_if<double>())
    out.text(nlohmann::json(*number).dump());
  else
    out.text(cell_text(value, SIZE_MAX));
}

}  // namespace

void write_json(const Document& document, Writer& out) {
  const Value::Object none;
  const auto* fields = document.fields.get_if<Value::Object>();
  const auto& [keys, values] = fields != nullptr ? *fields : none;
  // A document that lists groups is one line without blanks: it may be large.
  const bool is_compact = document.groups.has_value();
  out.character('{');
  if (!is_compact) break_line(1, out);
  out.text(is_compact ? "\"schema\":" : "\"schema\": ");
  out.text(json_string(document.schema));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out.character(',');
    if (!is_compact) {
      write_field(keys[i], values[i], 0, out);
      continue;
    }
    out.text(json_string(keys[i]));
    out.character(':');
    write_value(values[i], 0, out);
  }
  if (is_compact) {
    out.text(",\"groups\":");
    write_group_lists(*document.groups, out);
  } else {
    break_line(0, out);
  }
  out.text("}\n");
}

}  // namespace rankmesh::report::detail
