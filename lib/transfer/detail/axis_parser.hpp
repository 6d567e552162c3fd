// SPDX-License-Identifier: BSD-3-Clause
// Reads words and numbers from the text of a place, and how an axis is divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/transfer/axis_placement.hpp"

namespace rankmesh::detail {

/// The greatest number of elements of a tensor. It is far larger than that of any real tensor.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 50;

/// A position in the text of a place, and the part of its grammar that describes an axis. Blanks
/// are skipped.
class AxisParser {
 public:
  explicit AxisParser(std::string_view text) : text_{text} {}

 protected:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_name(char c) { return is_name_start(c) || is_digit(c); }

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_blanks();
  /// Skips the character, or the whole word, if it is next.
  bool take(char c);
  bool take_word(std::string_view word);
  void require(char c, std::string_view after, std::string_view hint);
  std::string name(std::string_view element);
  std::int64_t number(std::string_view element, std::int64_t least = 0);

  /// Throws a SpecError that shows the text around a position, or around the next character.
  [[noreturn]] void refuse(std::size_t position, std::string_view reason,
                           std::string_view hint) const;
  [[noreturn]] void refuse(std::string_view reason, std::string_view hint) const {
    refuse(at_, reason, hint);
  }

  /// Reads the segments of an axis. The dimensions are appended to `names_`.
  AxisPlacement axis(std::int64_t size);

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::pair<std::string, std::size_t>> names_;  ///< dimensions and their positions

 private:
  AxisSegment segment(std::int64_t first, std::int64_t size, bool is_first, bool& has_ranges);
  void check_overlap(const AxisPlacement& axis, std::size_t position) const;
  std::vector<AxisSplit> share();
  void rule(AxisSplit& split);
  std::vector<IndexRange> list();
};

}  // namespace rankmesh::detail
