// SPDX-License-Identifier: BSD-3-Clause
// A report as a value. The writers print it as text, JSON or CSV (rankmesh/report/write.hpp).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh::report {

/// A list of ranks that is formatted when it is written, so that a form of the report that shortens
/// or omits the list does not pay for its formatting.
struct Ranks {
  RankSet set;
  std::size_t most = SIZE_MAX;  ///< the most characters in JSON and CSV; ",..." replaces the rest
};

struct Field;

/// A value of a field or of a cell: null, a boolean, a number, a text, ranks, a list or an object.
/// An object keeps its fields in the order in which they were added.
class RANKMESH_API Value {
 public:
  using List = std::vector<Value>;
  struct Object {
    std::vector<std::string> keys;
    std::vector<Value> values;
  };

  Value() = default;
  Value(std::nullptr_t);
  Value(bool value);
  Value(double value);
  Value(const char* text);
  Value(std::string_view text);
  Value(std::string text);
  Value(Ranks ranks);
  Value(List items);
  Value(Object fields);
  template <std::integral Integer>
  Value(Integer value) : data_{static_cast<std::int64_t>(value)} {}
  /// Creates the value in `value`, or null if `value` is empty.
  template <class T>
  Value(const std::optional<T>& value) : Value{value ? Value{*value} : Value{}} {}
  /// Creates an object.
  Value(std::initializer_list<Field> fields);

  /// Returns the value of the field `key`, which is added as null if the object does not have this
  /// field. A null value becomes an object.
  Value& operator[](std::string_view key);
  /// Appends to a list. A null value becomes a list.
  void push_back(Value item);

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  /// Returns a pointer to the alternative `T`, or null if the value is another alternative.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&data_);
  }

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Ranks, List, Object> data_;
};

/// A field of an object that is written as `{{"key", value}, ...}`.
struct Field {
  std::string key;
  Value value;
};

/// Rows of cells under titled columns.
struct Table {
  enum class Align : std::uint8_t { left, right };
  enum class Forms : std::uint8_t { all, csv_only };
  struct Column {
    std::string title;
    Align align = Align::left;
    Forms forms = Forms::all;
    std::size_t most = SIZE_MAX;  ///< the most characters in a cell of ranks in text
    /// If this is not 0, text leaves a cell blank if the row above has the same cells in all
    /// columns from level 1 to this level. CSV prints every cell.
    int level = 0;
  };
  std::vector<Column> columns;
  std::vector<std::vector<Value>> rows;
};

/// A piece of text, which is printed without changes.
struct Span {
  std::string text;
  bool is_bold = false;  ///< bold if the caller asks for colour
};

/// The place of `Document::table` in the text, cut after `most_rows`.
struct TableHere {
  std::size_t most_rows = SIZE_MAX;
};

/// The text by which the user asked for a family (`dp*tp`), and the family. The text becomes the
/// key of the family.
using NamedFamily = std::pair<std::string, GroupFamily>;

/// A report in all three forms.
///
/// Text is a sequence of pieces that is laid out for people. JSON contains the fields. CSV contains
/// one table, which a reader can load into a spreadsheet. Text prints the same table in the place
/// of `TableHere`.
struct Document {
  std::string schema;  ///< name and version, as in `rankmesh.show/1`; the first field of JSON
  Value fields;        ///< an object
  std::vector<std::variant<Span, Table, TableHere>> text;
  Table table;
  /// All groups of some names. They are listed after the text, in the JSON field `groups`, and as
  /// rows of CSV. The groups are computed while they are written, in constant memory.
  std::optional<std::vector<NamedFamily>> groups;

  void add(std::string piece) { text.emplace_back(Span{std::move(piece)}); }
  void add_bold(std::string piece) { text.emplace_back(Span{std::move(piece), true}); }
};

}  // namespace rankmesh::report
