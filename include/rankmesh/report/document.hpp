// SPDX-License-Identifier: BSD-3-Clause
// A report as a value. The functions in rankmesh/report/write.hpp print it as text, JSON or CSV.
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

/// A list of ranks that is formatted only when it is written. If an output form shortens or omits
/// the list, the ranks that it does not print are never formatted.
struct Ranks {
  RankSet set;
  /// The maximum number of characters in JSON and CSV. A longer list is cut and ends in ",...".
  std::size_t most = SIZE_MAX;
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
  /// Creates a value from the contents of `value`, or null if `value` is empty.
  template <class T>
  Value(const std::optional<T>& value) : Value{value ? Value{*value} : Value{}} {}
  /// Creates an object.
  Value(std::initializer_list<Field> fields);

  /// Returns the value of the field `key`. If the object does not have this field, the function
  /// adds the field with the value null. If this value is null, it first becomes an empty object.
  Value& operator[](std::string_view key);
  /// Appends an item to a list. If this value is null, it first becomes an empty list.
  void push_back(Value item);

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  /// Returns a pointer to the `T` that this value holds, or null if this value is of a different
  /// type.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&data_);
  }

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Ranks, List, Object> data_;
};

/// A field of an object. An object can be initialised with a list of fields: `{{"key", value},
/// ...}`.
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
    std::size_t most = SIZE_MAX;  ///< maximum number of characters in a cell of ranks, in text
    /// The level of the column for the grouping of rows, or 0 if the column is not used for
    /// grouping. In text, a cell is left blank if the row above has the same cells in all columns
    /// from level 1 to this level. CSV prints every cell.
    int level = 0;
  };
  std::vector<Column> columns;
  std::vector<std::vector<Value>> rows;
};

/// A piece of text, which is printed verbatim.
struct Span {
  std::string text;
  bool is_bold = false;  ///< printed in bold if the caller asks for colour
};

/// Marks the place of `Document::table` in the text. The text contains at most the first
/// `most_rows` rows of the table.
struct TableHere {
  std::size_t most_rows = SIZE_MAX;
};

/// A text by which the user asked for a family, for example `dp*tp`, and the family itself. Reports
/// use the text as the key of the family.
using NamedFamily = std::pair<std::string, GroupFamily>;

/// A report that can be printed in three forms: text, JSON and CSV.
///
/// The text form is a sequence of pieces, which is laid out for people. The JSON form contains the
/// fields. The CSV form contains one table, which a user can load into a spreadsheet. The text form
/// prints the same table at the place of `TableHere`.
struct Document {
  std::string schema;  ///< name and version, as in `rankmesh.show/1`; the first field of JSON
  Value fields;        ///< an object
  std::vector<std::variant<Span, Table, TableHere>> text;
  Table table;
  /// The families whose groups are all listed. The groups follow the text, or they are in the JSON
  /// field `groups`, or they are the rows of CSV. They are computed while they are written, which
  /// needs constant memory.
  std::optional<std::vector<NamedFamily>> groups;
  /// What is known about the ranks, one row for each rank. Its columns follow those of the long CSV
  /// form. Empty if nothing is known.
  Table of_ranks{};

  void add(std::string piece) { text.emplace_back(Span{std::move(piece)}); }
  void add_bold(std::string piece) { text.emplace_back(Span{std::move(piece), true}); }
};

}  // namespace rankmesh::report
