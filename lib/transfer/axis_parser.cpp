// SPDX-License-Identifier: BSD-3-Clause
#include "detail/axis_parser.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t most_segments = 1024;
constexpr const char* fused_hint =
    "write the number of its indices, as in 4096:tp + 1024:tp + 1024:tp";

}  // namespace

void AxisParser::skip_blanks() {
  while (!at_end() && is_blank(peek())) ++at_;
}
bool AxisParser::take(char c) {
  skip_blanks();
  if (at_end() || peek() != c) return false;
  ++at_;
  skip_blanks();
  return true;
}
bool AxisParser::take_word(std::string_view word) {
  skip_blanks();
  if (text_.substr(at_, word.size()) != word) return false;
  const std::size_t end = at_ + word.size();
  if (end < text_.size() && is_name(text_[end])) return false;
  at_ = end;
  skip_blanks();
  return true;
}
void AxisParser::require(char c, std::string_view after, std::string_view hint) {
  if (!take(c)) refuse(fmt::format("expected '{}' after {}", c, after), hint);
}
void AxisParser::refuse(std::size_t position, std::string_view reason,
                        std::string_view hint) const {
  throw SpecError{fmt::format("place '{}', position {}: {}", detail::excerpt(text_, position),
                              position, reason),
                  std::string{hint}, position};
}
std::string AxisParser::name(std::string_view element) {
  skip_blanks();
  if (!is_name_start(peek()))
    refuse(fmt::format("expected {}", element),
           "a name begins with a letter or '_' and continues with letters, digits and '_'");
  const std::size_t begin = at_;
  while (is_name(peek())) ++at_;
  return std::string{text_.substr(begin, at_ - begin)};
}

std::int64_t AxisParser::number(std::string_view element, std::int64_t least) {
  skip_blanks();
  const std::size_t begin = at_;
  std::int64_t value = 0;
  while (is_digit(peek())) ++at_;
  const auto [end, error] = std::from_chars(text_.data() + begin, text_.data() + at_, value);
  const std::size_t last = at_;
  at_ = begin;
  if (last == begin || is_name(last < text_.size() ? text_[last] : '\0'))
    refuse(fmt::format("{} must be a whole number", element), "write decimal digits");
  if (error == std::errc::result_out_of_range || value > most_elements)
    refuse(fmt::format("{} is greater than {}", element, most_elements), "use a smaller number");
  if (value < least)
    refuse(fmt::format("{} must be at least {}, got {}", element, least, value),
           fmt::format("write {} or more", least));
  at_ = last;
  skip_blanks();
  return value;
}

AxisPlacement AxisParser::axis(std::int64_t size) {
  AxisPlacement axis;
  std::int64_t end = 0;
  bool has_ranges = false;
  const std::size_t begin = at_;
  do {
    if (axis.size() == most_segments)
      refuse(fmt::format("more than {} segments", most_segments), "use fewer segments");
    axis.push_back(segment(end, size, axis.empty(), has_ranges));
    end = axis.back().range.end();
  } while (take('+'));
  if (!has_ranges && end != size)
    refuse(begin, fmt::format("the segments have {} of the {} indices of the axis", end, size),
           "add the others, or write first-last:name if no rank has them");
  check_overlap(axis, begin);
  return axis;
}

// The extent may be left out if there is one segment.
AxisSegment AxisParser::segment(std::int64_t first, std::int64_t size, bool is_first,
                                bool& has_ranges) {
  skip_blanks();
  const std::size_t position = at_;
  AxisSegment segment{.range = {first, size - first}};
  const bool has_extent = is_digit(peek());
  if (has_extent) {
    const std::int64_t value = number("the extent of a segment");
    if (take('-')) {
      segment.range = {value, number("the last index", value) - value + 1};
      has_ranges = true;
    } else {
      segment.range.count = value;
      if (value == 0) refuse(position, "a segment has no indices", "leave the segment out");
    }
    require(':', "the extent of a segment",
            "write a segment as size:name or first-last:name, such as 4096:tp");
  } else if (!is_first) {
    refuse(position, "a segment of a fused axis has no extent", fused_hint);
  }
  if (segment.range.end() > size)
    refuse(position,
           fmt::format("the segment ends at {}, but the axis has {} indices", segment.range.end(),
                       size),
           "use smaller segments");
  segment.splits = share();
  if (!has_extent && peek() == '+')
    refuse(position, "a segment of a fused axis has no extent", fused_hint);
  return segment;
}

void AxisParser::check_overlap(const AxisPlacement& axis, std::size_t position) const {
  std::vector<IndexRange> ranges;
  for (const AxisSegment& segment : axis)
    if (segment.range.count > 0) ranges.push_back(segment.range);
  std::ranges::sort(ranges, {}, &IndexRange::first);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i - 1].end() > ranges[i].first)
      refuse(position, fmt::format("two segments have the index {}", ranges[i].first),
             "let the segments of an axis not overlap");
}

std::vector<AxisSplit> AxisParser::share() {
  skip_blanks();
  if (peek() == '_' && (at_ + 1 == text_.size() || !is_name(text_[at_ + 1]))) {
    ++at_;
    skip_blanks();
    return {};
  }
  std::vector<AxisSplit> splits;
  do {
    AxisSplit split;
    skip_blanks();
    split.position = at_;
    split.dimension = name("'_' or a dimension of the mesh");
    names_.emplace_back(split.dimension, split.position);
    if (std::ranges::find(splits, split.dimension, &AxisSplit::dimension) != splits.end())
      refuse(split.position, fmt::format("'{}' divides the same indices twice", split.dimension),
             "name each dimension once");
    if (take(':')) rule(split);
    splits.push_back(std::move(split));
    skip_blanks();
  } while (take('*'));
  return splits;
}

void AxisParser::rule(AxisSplit& split) {
  static const std::vector<std::string> rules{"even", "ceil", "cyclic", "sizes", "lists"};
  const std::size_t position = at_;
  const std::string word = name("a rule");
  skip_blanks();
  if (word == "even") return;
  if (word == "ceil") {
    split.rule = ShareRule::ceiling;
  } else if (word == "cyclic") {
    split.rule = ShareRule::cyclic;
    if (!take('(')) return;
    split.block = number("the size of a block", 1);
    require(')', "the size of a block", "write cyclic(128)");
  } else if (word == "sizes") {
    split.rule = ShareRule::sizes;
    require('(', "'sizes'", "write one size per coordinate, as in sizes(3,2,2)");
    do {
      split.sizes.push_back(number("a size"));
    } while (take(','));
    require(')', "the sizes", "write one size per coordinate, as in sizes(3,2,2)");
  } else if (word == "lists") {
    split.rule = ShareRule::lists;
    require('(', "'lists'", "write one list per coordinate, as in lists(0-3,8; 4-7)");
    do {
      split.lists.push_back(list());
    } while (take(';'));
    require(')', "the lists", "separate lists by ';' and ranges by ','");
  } else {
    refuse(position, fmt::format("unknown rule '{:.20}'", word),
           detail::suggest(word, rules, "the rules are"));
  }
}

std::vector<IndexRange> AxisParser::list() {
  std::vector<IndexRange> result;
  if (take('_')) return result;
  do {
    const std::int64_t first = number("an index");
    const std::int64_t last = take('-') ? number("the last index", first) : first;
    result.push_back({first, last - first + 1});
  } while (take(','));
  return result;
}

}  // namespace rankmesh::detail
