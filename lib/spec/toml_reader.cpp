// SPDX-License-Identifier: BSD-3-Clause
#include "detail/toml_reader.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/detail/private_api.hpp"
#include "detail/located.hpp"
#include "detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// The objects and lists of JSON as the tables and arrays of TOML. Their lines are not known.
class JsonReader {
 public:
  using Json = nlohmann::json;

  explicit JsonReader(std::string_view origin) : origin_{origin} {}

  [[nodiscard]] toml::table table_of(const Json& object, int depth = 0) const {
    if (depth > most_depth)
      refuse("values are nested too deeply", "write tables, lists and values");
    toml::table table;
    for (const auto& [key, value] : object.items())
      add(value, key, depth, [&table, &key = key](auto&& v) { table.insert(key, std::move(v)); });
    return table;
  }
  [[noreturn]] void refuse(std::string_view reason, std::string_view hint) const {
    throw SpecError{fmt::format("{}: {}", origin_, reason), std::string{hint}};
  }

 private:
  static constexpr int most_depth = 16;

  [[nodiscard]] toml::array array_of(const Json& list, std::string_view key, int depth) const {
    if (depth > most_depth)
      refuse("values are nested too deeply", "write tables, lists and values");
    toml::array array;
    for (const Json& value : list)
      add(value, key, depth, [&array](auto&& v) { array.push_back(std::move(v)); });
    return array;
  }
  template <class Add>
  void add(const Json& value, std::string_view key, int depth, const Add& to) const {
    if (value.is_object())
      to(table_of(value, depth + 1));
    else if (value.is_array())
      to(array_of(value, key, depth + 1));
    else if (value.is_string())
      to(value.get<std::string>());
    else if (value.is_boolean())
      to(value.get<bool>());
    else if (value.is_number_integer() &&
             (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX))
      to(value.get<std::int64_t>());
    else if (value.is_number())
      to(value.get<double>());
    else
      refuse(fmt::format("'{:.40}' has no value", key), "leave it out, or write a value");
  }

  std::string_view origin_;
};

}  // namespace

// No TOML begins with a brace.
RANKMESH_PRIVATE_API toml::table parse_toml(std::string_view text, std::string_view origin) {
  if (const auto begin = text.find_first_not_of(" \t\r\n");
      begin != std::string_view::npos && text[begin] == '{') {
    const JsonReader reader{origin};
    const JsonReader::Json object = JsonReader::Json::parse(text, nullptr, false);
    if (object.is_discarded())
      reader.refuse("the text is no JSON", "check its braces, quotes and commas");
    return reader.table_of(object);
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw SpecError{fmt::format("{}:{}: TOML syntax error: {}", origin, error.source().begin.line,
                                error.description()),
                    "see https://toml.io for the syntax"};
  }
}

RANKMESH_PRIVATE_API std::int64_t TomlReader::line(std::string_view key) const {
  const toml::node* node = table_.get(key);
  return node == nullptr ? 0 : node->source().begin.line;
}

std::vector<TomlReader::TomlEntry> TomlReader::entries() const {
  std::vector<std::pair<toml::source_position, TomlEntry>> found;
  for (const auto& [key, node] : table_)
    found.emplace_back(key.source().begin,
                       TomlEntry{std::string{key.str()}, &node, key.source().begin.line});
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TomlEntry> result;
  for (auto& [position, entry] : found) result.push_back(std::move(entry));
  return result;
}

RANKMESH_PRIVATE_API void TomlReader::require_known_keys(std::span<const std::string> keys) const {
  for (const TomlEntry& entry : entries())
    if (std::ranges::find(keys, entry.key) == keys.end())
      refuse(entry.line, fmt::format("unknown key '{:.40}'", entry.key),
             suggest(entry.key, keys, "the keys are"));
}

RANKMESH_PRIVATE_API std::string TomlReader::text(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return {};
  const auto value = node->value_exact<std::string>();
  if (!value)
    refuse(*node, fmt::format("'{}' must be a string", key),
           fmt::format("write {} = \"...\"", key));
  return *value;
}

RANKMESH_PRIVATE_API std::vector<std::string> TomlReader::texts(std::string_view key) const {
  std::vector<std::string> result;
  const toml::node* node = table_.get(key);
  if (node == nullptr) return result;
  const toml::array* array = node->as_array();
  if (array == nullptr)
    refuse(*node, fmt::format("'{}' must be a list of strings", key),
           fmt::format("write {} = [\"...\"]", key));
  for (const toml::node& element : *array) {
    const auto value = element.value_exact<std::string>();
    if (!value)
      refuse(element, fmt::format("'{}' must contain strings only", key),
             "put every element in quotes");
    result.push_back(*value);
  }
  return result;
}

RANKMESH_PRIVATE_API bool TomlReader::flag(std::string_view key, bool otherwise) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return otherwise;
  const auto value = node->value_exact<bool>();
  if (!value)
    refuse(*node, fmt::format("'{}' must be true or false", key),
           fmt::format("write {} = true", key));
  return *value;
}

RANKMESH_PRIVATE_API std::optional<std::int64_t> TomlReader::number(std::string_view key,
                                                                    std::int64_t least,
                                                                    std::int64_t most) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  const auto value = node->value_exact<std::int64_t>();
  if (!value || *value < least || *value > most)
    refuse(*node,
           most == INT64_MAX - 1
               ? fmt::format("'{}' must be a whole number from {} up", key, least)
               : fmt::format("'{}' must be a whole number from {} to {}", key, least, most),
           "write a whole number, without quotes");
  return value;
}

RANKMESH_PRIVATE_API std::vector<TomlReader::TomlEntry> TomlReader::entries_of(
    std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return {};
  return table({std::string{key}, node, node->source().begin.line}).entries();
}

TomlReader TomlReader::table(const TomlEntry& entry) const {
  const toml::table* table = entry.value->as_table();
  if (table == nullptr)
    refuse(entry.line, fmt::format("'{:.40}' must be a table", entry.key),
           "write its keys below a line with its name in brackets, or in braces");
  return {*table, origin_};
}

RankSet TomlReader::ranks(std::string_view key, const toml::node& node, std::int64_t most) const {
  const auto refuse_form = [&] {
    throw SpecError{fmt::format("'{}' must be a list of ranks", key),
                    "write [0, 1, 2], or a text such as \"0-3,8\""};
  };
  return located(origin_, node.source().begin.line, "list each rank once", [&] {
    if (const auto text = node.value_exact<std::string>()) return RankSet::parse(*text, most);
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty()) refuse_form();
    if (static_cast<std::int64_t>(array->size()) > most)
      throw SpecError{fmt::format("more than {} ranks are listed", most),
                      "write a text such as \"0-3,8\""};
    std::vector<Rank> ranks;
    for (const toml::node& element : *array) {
      const auto value = element.value_exact<std::int64_t>();
      if (!value || *value < 0 || *value == INT64_MAX) refuse_form();
      ranks.emplace_back(*value);
    }
    return RankSet::of(ranks);
  });
}

RANKMESH_PRIVATE_API void TomlReader::refuse(const toml::node& where, std::string_view reason,
                                             std::string_view hint) const {
  refuse(where.source().begin.line, reason, hint);
}

RANKMESH_PRIVATE_API void TomlReader::refuse(std::int64_t line, std::string_view reason,
                                             std::string_view hint) const {
  throw SpecError{fmt::format("{}: {}", place_of(origin_, line), reason), std::string{hint}};
}

}  // namespace rankmesh::detail
