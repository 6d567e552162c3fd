// SPDX-License-Identifier: BSD-3-Clause
// Reads lists of tensors and rules of layouts.
#include "rankmesh/transfer/tensor_list.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/detail/text.hpp"
#include "detail/element_types.hpp"
#include "rankmesh/base/error.hpp"
#include "spec/detail/toml_reader.hpp"

namespace rankmesh {
namespace {

using detail::TomlReader;

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

// Reads `first-last` after the ':' of a counter.
bool read_values(std::string_view text, TensorList::Counter& counter) {
  const char* const end = text.data() + text.size();
  TensorList::Counter read{counter.name};
  const auto first = std::from_chars(text.data(), end, read.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return false;
  const auto last = std::from_chars(first.ptr + 1, end, read.last);
  const bool is_valid = last.ec == std::errc{} && last.ptr == end && read.first <= read.last &&
                        read.last <= counter.last;
  if (is_valid) counter = std::move(read);
  return is_valid;
}

// Takes the counters out of the name, and removes their values from it.
void read_counters(const TensorList& list, TensorList::Entry& entry, const TomlReader& reader) {
  std::string name;
  for (std::size_t at = 0; at < entry.name.size();) {
    const std::size_t open = entry.name.find('{', at);
    const std::size_t close = entry.name.find('}', open);
    if (open == std::string::npos || close == std::string::npos) {
      name += entry.name.substr(at);
      break;
    }
    const std::string text = entry.name.substr(open + 1, close - open - 1);
    const std::size_t colon = text.find(':');
    const auto known =
        std::ranges::find(list.counters, text.substr(0, colon), &TensorList::Counter::name);
    if (known == list.counters.end())
      reader.refuse(entry.line, fmt::format("'{:.40}' is not among the counters", text),
                    "write it into the table 'counters', with its number of values");
    entry.counters.push_back(*known);
    if (colon != std::string::npos && !read_values(text.substr(colon + 1), entry.counters.back()))
      reader.refuse(entry.line, fmt::format("'{:.40}' has no valid values", text),
                    fmt::format("write {}:first-last, at most {}", known->name, known->last));
    name += entry.name.substr(at, open - at) + "{" + known->name + "}";
    at = close + 1;
  }
  entry.name = std::move(name);
}

}  // namespace

TensorList TensorList::parse_toml(std::string_view text, std::string_view origin) {
  static const std::vector<std::string> keys{"name", "source", "counters", "tensors"};
  static const std::vector<std::string> entry_keys{"name", "shape", "type"};
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const toml::table table = detail::parse_toml(text, origin);
  const TomlReader reader{table, origin};
  reader.require_known_keys(keys);
  TensorList list{.name = reader.text("name"), .counters = {}, .entries = {}};
  for (const TomlReader::TomlEntry& counter : reader.entries_of("counters")) {
    const auto count = counter.value->value<std::int64_t>().value_or(0);
    if (!counter.value->is_integer() || count < 1 || count > most)
      reader.refuse(counter.line,
                    fmt::format("the counter '{}' must be from 1 to {}", counter.key, most),
                    "write counters = {layer = 32}");
    list.counters.push_back({counter.key, 0, count - 1});
  }
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
    read_counters(list, entry, one);
    list.entries.push_back(std::move(entry));
  });
  return list;
}

LayoutRules LayoutRules::parse_toml(std::string_view text, std::string_view origin) {
  static const std::vector<std::string> keys{"name", "source", "rules"};
  static const std::vector<std::string> rule_keys{"tensors", "axes", "at"};
  const toml::table table = detail::parse_toml(text, origin);
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
