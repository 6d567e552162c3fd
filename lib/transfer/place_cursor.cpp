// SPDX-License-Identifier: BSD-3-Clause
#include "detail/place_cursor.hpp"

#include <charconv>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {

void PlaceCursor::skip_blanks() {
  while (!at_end() && is_blank(peek())) ++at_;
}
bool PlaceCursor::take(char c) {
  skip_blanks();
  if (at_end() || peek() != c) return false;
  ++at_;
  skip_blanks();
  return true;
}
bool PlaceCursor::take_word(std::string_view word) {
  skip_blanks();
  if (text_.substr(at_, word.size()) != word) return false;
  const std::size_t end = at_ + word.size();
  if (end < text_.size() && is_name(text_[end])) return false;
  at_ = end;
  skip_blanks();
  return true;
}
void PlaceCursor::require(char c, std::string_view after, std::string_view hint) {
  if (!take(c)) refuse(fmt::format("expected '{}' after {}", c, after), hint);
}
void PlaceCursor::refuse(std::size_t position, std::string_view reason,
                         std::string_view hint) const {
  throw SpecError{fmt::format("place '{}', position {}: {}", detail::excerpt(text_, position),
                              position, reason),
                  std::string{hint}, position};
}
std::string PlaceCursor::name(std::string_view element) {
  skip_blanks();
  if (!is_name_start(peek()))
    refuse(fmt::format("expected {}", element),
           "a name begins with a letter or '_' and continues with letters, digits and '_'");
  const std::size_t begin = at_;
  while (is_name(peek())) ++at_;
  return std::string{text_.substr(begin, at_ - begin)};
}

std::int64_t PlaceCursor::number(std::string_view element, std::int64_t least) {
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

}  // namespace rankmesh::detail
