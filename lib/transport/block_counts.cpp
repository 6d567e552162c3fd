// SPDX-License-Identifier: BSD-3-Clause
#include "detail/block_counts.hpp"

#include <cstring>

#include <fmt/format.h>

namespace rankmesh::detail {

// The word is copied and not accessed through a cast pointer, because it lies in memory whose type
// changes.
CallWord BlockCounts::word(std::size_t member, std::int64_t i) const {
  CallWord word = 0;
  std::memcpy(&word, words_[member] + static_cast<std::size_t>(i) * sizeof word, sizeof word);
  return word;
}

std::string BlockCounts::text(std::size_t member, std::int64_t count) const {
  constexpr std::int64_t most = 8;
  if (words_[member] == nullptr)
    return fmt::format("own {} of {}", operation_ == Operation::all_to_all ? "blocks" : "block",
                       count);
  const auto size = std::ssize(words_);
  const auto list = [&](std::int64_t first) {
    std::string text;
    for (std::int64_t k = 0; k < std::min(size, most); ++k)
      text += fmt::format("{}{}", k == 0 ? "" : ",", word(member, first + k));
    return size > most ? text + ",..." : text;
  };
  if (operation_ != Operation::all_to_all) return "blocks of " + list(1);
  return fmt::format("blocks of {} sent and {} received", list(1), list(1 + size));
}

std::size_t BlockCounts::conflicts(std::size_t member) const {
  if (operation_ != Operation::all_to_all || words_[member] == nullptr) return 0;
  const auto size = std::ssize(words_);
  const auto a = static_cast<std::int64_t>(member);
  std::size_t count = 0;
  for (std::int64_t b = 0; b < size; ++b) {
    const auto other = static_cast<std::size_t>(b);
    if (a != b && words_[other] != nullptr &&
        !block_counts_agree(
            operation_, 0, a, b, size, 0, 1 + 2 * size,
            [&](std::int64_t i) { return word(member, i); },
            [&](std::int64_t i) { return word(other, i); }))
      ++count;
  }
  return count;
}

}  // namespace rankmesh::detail
