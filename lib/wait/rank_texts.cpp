// SPDX-License-Identifier: BSD-3-Clause
#include "detail/rank_texts.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh::detail {

std::string list_texts(const std::vector<std::pair<Rank, std::string>>& texts,
                       const RankNames& names) {
  struct Variant {
    std::string text;
    std::vector<Rank> ranks;
  };
  std::vector<Variant> variants;
  for (const auto& [rank, text] : texts) {
    auto same = std::ranges::find(variants, text, &Variant::text);
    if (same == variants.end()) same = variants.insert(same, {text, {}});
    same->ranks.push_back(rank);
  }
  if (variants.empty()) return {};
  // The variant of the first rank goes to the end, so that the stable sort puts the ranks that
  // differ from it first on a tie.
  std::ranges::rotate(variants, variants.begin() + 1);
  std::ranges::stable_sort(variants, {}, [](const Variant& v) { return v.ranks.size(); });
  std::vector<std::string> parts;
  for (Variant& variant : variants) {
    std::ranges::sort(variant.ranks);
    parts.push_back(
        variant.ranks.size() == 1
            ? fmt::format("rank {}: {}", names(variant.ranks.front()), variant.text)
            : fmt::format("ranks {}: {}", RankSet::of(variant.ranks).to_string(60), variant.text));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace rankmesh::detail
