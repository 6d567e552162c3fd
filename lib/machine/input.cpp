// SPDX-License-Identifier: BSD-3-Clause
#include "detail/input.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

}  // namespace

std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::int64_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = stripped(line.substr(0, line.find('#')));
    if (!line.empty()) lines.push_back({line, number});
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!(text = stripped(text)).empty()) {
    const auto end = std::ranges::find_if(text, is_blank);
    const auto size = static_cast<std::size_t>(end - text.begin());
    words.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return words;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::int64_t number_in(std::string_view text, std::string_view what, std::int64_t least,
                       std::int64_t most, std::string_view origin, std::int64_t line) {
  const auto value = parse_number(text);
  if (!value || *value < least || *value > most)
    refuse(origin, line,
           fmt::format("{} must be a number from {} to {}, got '{:.40}'", what, least, most, text),
           "write decimal digits only");
  return *value;
}

void refuse(std::string_view origin, std::int64_t line, std::string_view reason,
            std::string_view hint) {
  throw SpecError{line > 0 ? fmt::format("{}:{}: {}", origin, line, reason)
                           : fmt::format("{}: {}", origin, reason),
                  std::string{hint}};
}

}  // namespace rankmesh::detail
