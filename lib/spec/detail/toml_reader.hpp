// SPDX-License-Identifier: BSD-3-Clause
// Reads one table of a mesh file by type.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh::detail {

/// Reads the text of a TOML file, or of a file in JSON with the same keys: its name ends in
/// `.json`, or its text begins with a brace.
/// @throws SpecError with the line and the reason if the syntax is wrong. In JSON, only keys have
/// lines.
RANKMESH_API toml::table parse_toml(std::string_view text, std::string_view origin);

/// Reads one table of a mesh file by type. A value of another type is an error at its line.
class RANKMESH_API TomlReader {
 public:
  struct TomlEntry {
    std::string key;
    const toml::node* value;
    std::int64_t line;
  };

  TomlReader(const toml::table& table, std::string_view origin) : table_{table}, origin_{origin} {}

  [[nodiscard]] const toml::node* find(std::string_view key) const { return table_.get(key); }
  [[nodiscard]] std::int64_t line(std::string_view key) const;
  /// Returns all keys in the order of the file. toml++ itself sorts the keys.
  [[nodiscard]] std::vector<TomlEntry> entries() const;
  /// @throws SpecError at the line of the first key that is not among these.
  void require_known_keys(std::span<const std::string> keys) const;

  /// These return an empty value if the key is missing.
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  /// @param otherwise  The value if the key is missing.
  [[nodiscard]] bool flag(std::string_view key, bool otherwise = false) const;
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view key, std::int64_t least,
                                                   std::int64_t most = INT64_MAX - 1) const;
  /// Returns the entries of the table `key`, none if the key is missing.
  [[nodiscard]] std::vector<TomlEntry> entries_of(std::string_view key) const;
  [[nodiscard]] TomlReader table(const TomlEntry& entry) const;

  /// Reads a list of numbers or a text such as `0-3,8`. A list has at most `most` ranks; a single
  /// range may have any number.
  [[nodiscard]] RankSet ranks(std::string_view key, const toml::node& node,
                              std::int64_t most) const;

  [[noreturn]] void refuse(const toml::node& where, std::string_view reason,
                           std::string_view hint) const;
  [[noreturn]] void refuse(std::int64_t line, std::string_view reason, std::string_view hint) const;

 private:
  // Returns the line of a part of the value of a key; in JSON, that of the key.
  [[nodiscard]] std::int64_t line_of(std::string_view key, const toml::node& value) const;

  const toml::table& table_;
  std::string_view origin_;
};

}  // namespace rankmesh::detail
