// SPDX-License-Identifier: BSD-3-Clause
// Reads lists of tensors and rules of layouts.
#include "rankmesh/transfer/tensor_list.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/detail/text.hpp"
#include "detail/element_types.hpp"
#include "rankmesh/base/error.hpp"
#include "spec/detail/toml_reader.hpp"

namespace rankmesh {
namespace {

using detail::TomlReader;

toml::table parsed(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw SpecError{fmt::format("{}:{}: TOML syntax error: {}", origin, error.source().begin.line,
                                error.description()),
                    "see https://toml.io for the syntax"};
  }
}

// Calls `take(table, line)` for each table of an array of tables.
template <class Take>
void for_each_table(const TomlReader& reader, std::string_view key, const Take& take) {
  const toml::node* const node = reader.find(key);
  const toml::array* const tables = node != nullptr ? node->as_array() : nullptr;
  if (tables == nullptr || tables->empty())
    reader.refuse(reader.line(key), fmt::format("there is no [[{}]]", key),
                  fmt::format("write at least one table [[{}]]", key));
  for (const toml::node& item : *tables) {
    const toml::table* const table = item.as_table();
    if (table == nullptr)
      reader.refuse(item, fmt::format("'{}' must consist of tables", key),
                    fmt::format("write [[{}]]", key));
    take(*table, static_cast<std::int64_t>(item.source().begin.line));
  }
}

std::string required_text(const TomlReader& reader, std::string_view key, std::int64_t line) {
  std::string text = reader.text(key);
  if (text.empty())
    reader.refuse(line, fmt::format("the table has no '{}'", key),
                  fmt::format("write {} = \"...\"", key));
  return text;
}

}  // namespace

TensorList TensorList::parse_toml(std::string_view text, std::string_view origin) {
  static const std::vector<std::string> keys{"name", "source", "tensors"};
  static const std::vector<std::string> entry_keys{"name", "shape", "type", "over"};
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const toml::table table = parsed(text, origin);
  const TomlReader reader{table, origin};
  reader.require_known_keys(keys);
  TensorList list{.name = reader.text("name"), .entries = {}};
  for_each_table(reader, "tensors", [&](const toml::table& of_entry, std::int64_t line) {
    const TomlReader one{of_entry, origin};
    one.require_known_keys(entry_keys);
    Entry entry{.name = required_text(one, "name", line), .shape = {}, .line = line};
    const toml::array* const shape = of_entry["shape"].as_array();
    if (shape == nullptr)
      one.refuse(line, "the table has no 'shape'", "write shape = [4096, 4096]");
    for (const toml::node& size : *shape) {
      entry.shape.push_back(size.value<std::int64_t>().value_or(-1));
      if (!size.is_integer() || entry.shape.back() < 0)
        one.refuse(size, "a size must be a whole number from 0 up", "write shape = [4096, 4096]");
    }
    if (const std::string type = one.text("type"); !type.empty()) {
      const auto known = detail::type_named(type);
      const std::vector<std::string> names{detail::short_names.begin(), detail::short_names.end()};
      if (!known)
        one.refuse(one.line("type"), fmt::format("unknown type '{:.20}'", type),
                   detail::suggest(type, names, "the types are"));
      entry.type = *known;
    }
    for (const TomlReader::Entry& counter : one.entries_of("over")) {
      const auto count = counter.value->value<std::int64_t>().value_or(0);
      if (!counter.value->is_integer() || count < 1 || count > most)
        one.refuse(counter.line,
                   fmt::format("the number of '{}' must be from 1 to {}", counter.key, most),
                   "write over = {layer = 32}");
      entry.over.emplace_back(counter.key, count);
      if (entry.name.find("{" + counter.key + "}") == std::string::npos)
        one.refuse(counter.line, fmt::format("the name does not contain {{{}}}", counter.key),
                   "write each counter into the name");
    }
    list.entries.push_back(std::move(entry));
  });
  return list;
}

LayoutRules LayoutRules::parse_toml(std::string_view text, std::string_view origin) {
  static const std::vector<std::string> keys{"name", "source", "rules"};
  static const std::vector<std::string> rule_keys{"tensors", "axes", "at"};
  const toml::table table = parsed(text, origin);
  const TomlReader reader{table, origin};
  reader.require_known_keys(keys);
  LayoutRules result{.name = reader.text("name"), .origin = std::string{origin}, .rules = {}};
  for_each_table(reader, "rules", [&](const toml::table& of_rule, std::int64_t line) {
    const TomlReader one{of_rule, origin};
    one.require_known_keys(rule_keys);
    result.rules.push_back({required_text(one, "tensors", line), required_text(one, "axes", line),
                            one.texts("at"), line});
  });
  return result;
}

}  // namespace rankmesh
