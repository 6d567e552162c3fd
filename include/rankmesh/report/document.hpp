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
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/report/picture.hpp"

namespace rankmesh::report {

/// A list of ranks that is formatted only when it is written. If an output form shortens or omits
/// the list, the ranks that it does not print are never formatted.
struct Ranks {
  RankSet set;  ///< The ranks.
  /// The maximum number of characters in JSON and CSV. A longer list is cut and ends in ",...".
  std::size_t most = SIZE_MAX;
};

struct Field;

/// A value of a field or of a cell: null, a boolean, a number, a text, ranks, a list or an object.
/// An object keeps its fields in the order in which they were added.
class RANKMESH_API Value {
 public:
  using List = std::vector<Value>;  ///< A list of values.
  /// An object: keys and their values, in order.
  struct Object {
    std::vector<std::string> keys;  ///< The keys.
    std::vector<Value> values;      ///< The value of each key.
  };

  Value() = default;
  /// Creates null.
  Value(std::nullptr_t);
  /// Creates a boolean.
  Value(bool value);
  /// Creates a number.
  Value(double value);
  /// Creates a text.
  Value(const char* text);
  /// Creates a text.
  Value(std::string_view text);
  /// Creates a text.
  Value(std::string text);
  /// Creates a list of ranks.
  Value(Ranks ranks);
  /// Creates a list.
  Value(List items);
  /// Creates an object.
  Value(Object fields);
  /// Creates an integer.
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

  /// Returns whether the value is null.
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
  std::string key;  ///< The key.
  Value value;      ///< The value.
};

/// Rows of cells under titled columns.
struct Table {
  /// The alignment of the cells of a column.
  enum class Align : std::uint8_t { left, right };
  /// The forms of output that have a column.
  enum class Forms : std::uint8_t { all, csv_only };
  /// A column of a table.
  struct Column {
    std::string title;            ///< The title.
    Align align = Align::left;    ///< The side on which cells begin.
    Forms forms = Forms::all;     ///< The forms of output that have the column.
    std::size_t most = SIZE_MAX;  ///< maximum number of characters in a cell of ranks, in text
    /// The level of the column for the grouping of rows, or 0 if the column is not used for
    /// grouping. In text, a cell is left blank if the row above has the same cells in all columns
    /// from level 1 to this level. CSV prints every cell.
    int level = 0;
  };
  std::vector<Column> columns;           ///< The columns, from left to right.
  std::vector<std::vector<Value>> rows;  ///< The cells of each row, one per column.
};

/// A piece of text, which is printed verbatim.
struct Span {
  std::string text;      ///< The text.
  bool is_bold = false;  ///< printed in bold if the caller asks for colour
};

/// Marks the place of `Document::table` in the text. The text contains at most the first
/// `most_rows` rows of the table.
struct TableHere {
  std::size_t most_rows = SIZE_MAX;  ///< The greatest number of rows in text.
};

/// A report that can be printed as text, JSON and CSV. If the report has a picture, it can also
/// be drawn.
///
/// The text form is a sequence of pieces, which is laid out for people. The JSON form contains the
/// fields. The CSV form contains one table, which a user can load into a spreadsheet. The text form
/// prints the same table at the place of `TableHere`.
struct Document {
  std::string schema;  ///< name and version, as in `rankmesh.show/1`; the first field of JSON
  Value fields;        ///< an object
  std::vector<std::variant<Span, Table, TableHere>> text;  ///< The pieces of the text form.
  Table table;                                             ///< The table of the CSV form.
  /// The families whose groups are all listed. The groups follow the text, or they are in the JSON
  /// field `groups`, or they are the rows of CSV. They are computed while they are written, which
  /// needs constant memory.
  std::optional<std::vector<NamedFamily>> groups;
  /// What is known about the ranks, one row for each rank. Its columns follow the columns of the
  /// long CSV form. Empty if nothing is known.
  Table of_ranks{};
  /// The picture of the forms SVG and HTML, or nothing if the report cannot be drawn.
  std::optional<Picture> picture{};

  /// Appends a piece of text.
  void add(std::string piece) { text.emplace_back(Span{std::move(piece)}); }
  /// Appends a piece of text that is bold if the caller asks for colour.
  void add_bold(std::string piece) { text.emplace_back(Span{std::move(piece), true}); }
};

}  // namespace rankmesh::report
