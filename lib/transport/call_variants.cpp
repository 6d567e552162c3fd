// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_variants.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "wait/detail/rank_texts.hpp"

namespace rankmesh::detail {

std::string list_calls(const RankSet& ranks, const RankNames& names,
                       const std::vector<std::string>& calls, const BlockCounts* counts) {
  std::vector<std::size_t> order(calls.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<Rank, std::string>> texts;
  if (counts != nullptr) {
    // The texts shall be listed by falling number of conflicts. On a tie, list_texts() moves the
    // text that it gets first to the end, so it gets the one with the fewest conflicts first.
    std::ranges::sort(order, std::greater{}, [&](std::size_t k) {
      return std::pair{counts->conflicts(k), k};
    });
    std::ranges::rotate(order, order.end() - 1);
  }
  for (const std::size_t k : order)
    if (!calls[k].empty()) texts.emplace_back(ranks.at(static_cast<std::int64_t>(k)), calls[k]);
  return list_texts(texts, names);
}

}  // namespace rankmesh::detail
