// Columns of text, aligned.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rankmesh::report::detail {

/// Characters of a list of ranks in one field of JSON or CSV.
inline constexpr std::size_t max_field = 1000;

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns) : columns_{std::move(columns)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Two blanks in front of every column, none at the end of a line. The title line may be
  /// coloured.
  [[nodiscard]] std::string to_string(bool colour) const;
  /// A header and the rows as RFC 4180 CSV.
  [[nodiscard]] std::string to_csv() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Quoted where CSV wants it.
std::string csv_field(const std::string& text);

std::string bold(const std::string& text, bool colour);
std::string dim(const std::string& text, bool colour);

}  // namespace rankmesh::report::detail
