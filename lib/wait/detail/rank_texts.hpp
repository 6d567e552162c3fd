// SPDX-License-Identifier: BSD-3-Clause
// What different ranks have passed or called, as one text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

using RankTexts = std::vector<std::pair<Rank, std::string>>;

/// Ranks with equal texts.
struct Variant {
  std::string text;
  std::vector<Rank> ranks;
};
/// Returns the variants in the order of their first ranks.
std::vector<Variant> variants_of(const RankTexts& texts);
/// Puts the variant of the fewest ranks first; on a tie, ranks that differ from the first rank of
/// the list come first.
std::vector<Variant> fewest_first(std::vector<Variant> variants);

/// Lists the texts of ranks: `rank 5 (dp=0,tp=1): WORDS; ranks 0-4,6-7: OTHER WORDS`. The text of
/// the fewest ranks comes first.
std::string list_texts(const RankTexts& texts, const RankNames& names);

}  // namespace rankmesh::detail
