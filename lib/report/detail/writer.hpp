// SPDX-License-Identifier: BSD-3-Clause
// The writers of the three forms, and the buffer in front of their sink.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.hpp"
#include "report/write.hpp"

namespace rankmesh::report::detail {

/// Collects pieces, so that the sink is called once per 64 KiB and not once per number.
class Writer {
 public:
  explicit Writer(const Sink& sink) : sink_{sink}, buffer_(capacity, '\0') {}
  void text(std::string_view piece) {
    if (piece.size() > capacity - size_) flush();
    if (piece.size() > capacity) return sink_(piece);
    std::memcpy(buffer_.data() + size_, piece.data(), piece.size());
    size_ += piece.size();
  }
  void character(char c) {
    if (size_ == capacity) flush();
    buffer_[size_++] = c;
  }
  void number(std::int64_t value) {
    if (capacity - size_ < 24) flush();
    char* const begin = buffer_.data() + size_;
    size_ += static_cast<std::size_t>(std::to_chars(begin, begin + 24, value).ptr - begin);
  }
  void flush() {
    if (size_ > 0) sink_(std::string_view{buffer_}.substr(0, size_));
    size_ = 0;
  }

 private:
  static constexpr std::size_t capacity = 65536;
  const Sink& sink_;
  std::string buffer_;
  std::size_t size_ = 0;
};

void write_text(const Document& document, const TextStyle& style, Writer& out);
void write_table(const Table& table, std::size_t most_rows, const TextStyle& style, Writer& out);

/// The listed groups of a document: lines of text, or rows of CSV.
void write_group_lines(const std::vector<NamedFamily>& families, Writer& out);
void write_group_rows(const std::vector<NamedFamily>& families, Writer& out);
/// A row of CSV for each member of each group, in constant memory.
/// @param of_ranks  more columns, with a row for each rank.
void write_member_rows(const std::vector<NamedFamily>& families, const Table& of_ranks,
                       Writer& out);
/// The listed groups as a JSON object of lists of lists.
void write_group_lists(const std::vector<NamedFamily>& families, Writer& out);

/// Returns JSON as text, on one line unless there is an indent. Bytes that are not UTF-8 are
/// replaced.
std::string json_text(const auto& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}
/// Returns a field of CSV, in quotes if RFC 4180 requires them.
std::string csv_field(const std::string& text);
/// Return a line of CSV: the titles, or the cells of a row. A comma precedes each of them.
std::string csv_titles(const Table& table);
std::string csv_cells(const Table& table, const std::vector<Cell>& row);

}  // namespace rankmesh::report::detail
