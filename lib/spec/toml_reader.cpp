// SPDX-License-Identifier: BSD-3-Clause
#include "detail/toml_reader.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/detail/private_api.hpp"
#include "detail/located.hpp"
#include "detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// Characters, and the line of the one that is read next.
struct CountedText {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  std::int64_t* line;

  const char& operator*() const { return *at; }
  CountedText& operator++() {
    *line += *at++ == '\n';
    return *this;
  }
  bool operator==(const CountedText& other) const { return at == other.at; }
  bool operator!=(const CountedText& other) const { return at != other.at; }
};

// The objects and lists of JSON as the tables and arrays of TOML. The keys have lines, the values
// have none. The functions have the names that the parser calls.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonReader(std::string_view origin) : origin_{origin} {}

  [[nodiscard]] toml::table read(std::string_view text) {
    const CountedText begin{text.data(), &line_}, end{text.data() + text.size(), &line_};
    const bool is_read = nlohmann::json::sax_parse(begin, end, this);
    if (!is_read || open_.empty() || !open_.front().is_object) refuse_text();
    return std::move(open_.front().table);
  }

  bool null() override {
    refuse(fmt::format("'{:.40}' has no value", open_.empty() ? "" : open_.back().key),
           "leave it out, or write a value");
  }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override {
    return value <= INT64_MAX ? add(static_cast<std::int64_t>(value))
                              : add(static_cast<double>(value));
  }
  bool number_float(double value, const std::string& /*text*/) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return false; }
  bool key(std::string& key) override {
    Open& object = open_.back();
    if (object.table.contains(key))
      refuse(fmt::format("the key '{:.40}' is given twice", key), "leave one of them");
    object.key = key;
    object.line = line_;
    ++object.keys;
    return true;
  }
  bool start_object(std::size_t /*count*/) override { return open({.is_object = true}); }
  bool start_array(std::size_t /*count*/) override {
    if (open_.empty()) return false;
    return open({.key = open_.back().key, .line = open_.back().line});
  }
  bool end_object() override {
    return close([&](Open& closed) { return add(std::move(closed.table)); });
  }
  bool end_array() override {
    return close([&](Open& closed) { return add(std::move(closed.array)); });
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    refuse_text();
  }

 private:
  static constexpr std::size_t most_depth = 16;

  // An object or a list that is not closed yet, and its latest key. Those of a list are those of
  // the list itself.
  struct Open {
    bool is_object = false;
    std::string key{};
    std::int64_t line = 0;
    toml::source_index keys = 0;  // how many there were: it stands for the column
    toml::table table{};
    toml::array array{};
  };

  bool open(Open&& next) {
    if (open_.size() > most_depth)
      refuse("values are nested too deeply", "write tables, lists and values");
    open_.push_back(std::move(next));
    return true;
  }
  template <class Add>
  bool close(const Add& to) {
    if (open_.size() == 1) return true;  // the whole text
    Open closed = std::move(open_.back());
    open_.pop_back();
    return to(closed);
  }
  template <class Value>
  bool add(Value&& value) {
    if (open_.empty()) return false;
    Open& in = open_.back();
    if (!in.is_object) {
      in.array.push_back(std::forward<Value>(value));
      return true;
    }
    toml::source_region where{};
    where.begin.line = where.end.line = static_cast<toml::source_index>(in.line);
    where.begin.column = where.end.column = in.keys;
    in.table.insert_or_assign(toml::key{in.key, std::move(where)}, std::forward<Value>(value));
    return true;
  }
  [[noreturn]] void refuse(std::string_view reason, std::string_view hint) const {
    throw SpecError{fmt::format("{}: {}", place_of(origin_, line_), reason), std::string{hint}};
  }
  [[noreturn]] void refuse_text() const {
    refuse("the text is no object of JSON",
           "begin and end it with braces, and check its quotes and commas");
  }

  std::string_view origin_;
  std::int64_t line_ = 1;
  std::vector<Open> open_{};
};

}  // namespace

// No TOML begins with a brace.
RANKMESH_PRIVATE_API toml::table parse_toml(std::string_view text, std::string_view origin) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (origin.ends_with(".json") || (begin != text.npos && text[begin] == '{'))
    return JsonReader{origin}.read(text);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw SpecError{fmt::format("{}:{}: TOML syntax error: {}", origin, error.source().begin.line,
                                error.description()),
                    "see https://toml.io for the syntax"};
  }
}

RANKMESH_PRIVATE_API std::int64_t TomlReader::line(std::string_view key) const {
  const auto found = table_.find(key);
  return found == table_.end() ? 0 : found->first.source().begin.line;
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
    refuse(line(key), fmt::format("'{}' must be a string", key),
           fmt::format("write {} = \"...\"", key));
  return *value;
}

RANKMESH_PRIVATE_API std::vector<std::string> TomlReader::texts(std::string_view key) const {
  std::vector<std::string> result;
  const toml::node* node = table_.get(key);
  if (node == nullptr) return result;
  const toml::array* array = node->as_array();
  if (array == nullptr)
    refuse(line(key), fmt::format("'{}' must be a list of strings", key),
           fmt::format("write {} = [\"...\"]", key));
  for (const toml::node& element : *array) {
    const auto value = element.value_exact<std::string>();
    if (!value)
      refuse(line_of(key, element), fmt::format("'{}' must contain strings only", key),
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
    refuse(line(key), fmt::format("'{}' must be true or false", key),
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
    refuse(line(key),
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
  return table({std::string{key}, node, line(key)}).entries();
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
  return located(origin_, line_of(key, node), "list each rank once", [&] {
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

std::int64_t TomlReader::line_of(std::string_view key, const toml::node& value) const {
  const std::int64_t own = value.source().begin.line;
  return own > 0 ? own : line(key);
}

RANKMESH_PRIVATE_API void TomlReader::refuse(std::int64_t line, std::string_view reason,
                                             std::string_view hint) const {
  throw SpecError{fmt::format("{}: {}", place_of(origin_, line), reason), std::string{hint}};
}

}  // namespace rankmesh::detail
