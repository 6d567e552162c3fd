// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/private_api.hpp"

#include "detail/text.hpp"

namespace rankmesh::detail {

RANKMESH_PRIVATE_API std::string excerpt(std::string_view text, std::size_t position) {
  constexpr std::size_t before = 24;
  constexpr std::size_t after = 32;
  constexpr std::size_t dots = 3;  // they would be longer than a shorter part
  const std::size_t begin = position > before + dots ? position - before : 0;
  const std::size_t end = position + after + dots < text.size() ? position + after : text.size();
  std::string result = begin > 0 ? "..." : "";
  for (const char c : text.substr(std::min(begin, text.size()), end > begin ? end - begin : 0))
    result += c >= ' ' && c <= '~' ? c : '?';
  return end < text.size() ? result + "..." : result;
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_distance = 3;
  for (const std::string& candidate : candidates) {
    if (word.size() > candidate.size() + 2 || candidate.size() > word.size() + 2) continue;
    std::vector<std::size_t> row(candidate.size() + 1);  // Levenshtein, one row at a time
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0]++;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t replaced = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    // If every character would have to be replaced, the word is a different word and not a typing
    // error.
    if (row.back() < best_distance && row.back() < std::max(word.size(), candidate.size())) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string suggest(std::string_view word, std::span<const std::string> candidates,
                    std::string_view label) {
  const std::string best = nearest(word, candidates);
  return fmt::format("{}{}: {}", best.empty() ? "" : fmt::format("did you mean '{}'? ", best),
                     label, fmt::join(candidates, ", "));
}

}  // namespace rankmesh::detail
