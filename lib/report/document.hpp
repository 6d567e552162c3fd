// SPDX-License-Identifier: BSD-3-Clause
// A report as a value. The functions in report/write.hpp print it as text, JSON, CSV or a picture.
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

#include <nlohmann/json.hpp>

#include "base/detail/text.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "report/picture.hpp"

/// An optional value is its content, or null.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(auto& json, const std::optional<T>& value) {
    value ? json = *value : json = nullptr;
  }
};

namespace rankmesh::report {

using rankmesh::detail::count_text;
using rankmesh::detail::name_in;

/// A value of JSON. An object keeps its fields in the order in which they were added.
using Json = nlohmann::ordered_json;

/// A list of ranks. In a table, it is formatted only when it is written: if an output form shortens
/// or omits it, the ranks that it does not print are never formatted. In JSON, it is a text.
struct Ranks {
  RankSet set;  ///< The ranks.
  /// The maximum number of characters in JSON and CSV. A longer list is cut and ends in ",...".
  std::size_t most = SIZE_MAX;

  friend void to_json(auto& json, const Ranks& ranks) { json = ranks.set.to_string(ranks.most); }
};

/// A cell of a table: ranks, or any other value of JSON.
struct Cell {
  Cell(Ranks ranks) : content{std::move(ranks)} {}
  /// Creates a cell from anything that JSON can hold.
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Cell> &&
             !std::same_as<std::remove_cvref_t<T>, Ranks>)
  Cell(T&& value) : content{Json(std::forward<T>(value))} {}

  /// Returns the cell without quotes. Lists of ranks take `most` characters at most.
  [[nodiscard]] std::string text(std::size_t most = SIZE_MAX) const;

  std::variant<Json, Ranks> content;  ///< The value.
};

/// Rows of cells under titled columns.
struct Table {
  /// The alignment of the cells of a column.
  enum class Align : std::uint8_t { left, right };
  /// The forms of output that have a column. JSON has the columns that it asks for.
  enum class Forms : std::uint8_t { all, csv_only, json_only };
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
  std::vector<Column> columns;          ///< The columns, from left to right.
  std::vector<std::vector<Cell>> rows;  ///< The cells of each row, one per column.

  /// Adds columns whose cells are to the left, or to the right.
  void add_columns(std::initializer_list<std::string> titles, Align align = Align::left);
  /// Returns the place of the column with this title; the number of columns if there is none.
  [[nodiscard]] std::size_t column(std::string_view title) const;
  /// Returns a list with an object for each row, whose fields are the columns with these titles.
  /// @param most  the greatest number of rows.
  [[nodiscard]] Json objects(std::initializer_list<std::string_view> titles,
                             std::size_t most = SIZE_MAX) const;
};

using enum Table::Align;

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
  Json fields;         ///< an object
  /// Lists of ranks and their places in `fields`. JSON has them as texts, which are formatted only
  /// when JSON is written: a group may be as large as the world.
  std::vector<std::pair<Json::json_pointer, Ranks>> lists{};
  std::vector<std::variant<Span, Table, TableHere>> text;  ///< The pieces of the text form.
  Table table;                                             ///< The table of the CSV form.
  /// The families whose groups are all listed. The groups follow the text, or they are in the JSON
  /// field `groups`, or they are the rows of CSV. They are computed while they are written, which
  /// needs constant memory.
  std::optional<std::vector<NamedFamily>> groups;
  /// What is known about the ranks, one row for each rank. Its columns follow the columns of the
  /// long CSV form. Empty if nothing is known.
  Table of_ranks{};
  /// The picture of the forms SVG and HTML; nothing if the report cannot be drawn.
  std::optional<Picture> picture{};

  /// Appends a piece of text.
  void add(std::string piece) { text.emplace_back(Span{std::move(piece)}); }
  /// Appends a piece of text that is bold if the caller asks for colour.
  void add_bold(std::string piece) { text.emplace_back(Span{std::move(piece), true}); }
  /// The width in which the texts of several lines are below each other.
  static constexpr std::size_t title_width = 9;
  /// Appends a line with a bold title, and the text behind it.
  /// @param width  the least width of the title with the blanks behind it.
  void add_line(const std::string& title, std::string_view words, std::size_t width = 0);
  /// Appends a line for each of these fields that is there: its name, and its text.
  void add_fields(std::initializer_list<const char*> names);
  /// Appends the table, of which the text has the first rows, and says how many rows it leaves out.
  /// @param all   the number of rows that there are.
  /// @param what  what the rows are, in the plural.
  void add_table(std::size_t most_rows, std::size_t all, std::string_view what);
};

}  // namespace rankmesh::report
