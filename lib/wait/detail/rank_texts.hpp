// SPDX-License-Identifier: BSD-3-Clause
// What different ranks have passed or called, as one text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

/// Lists the texts of ranks: `rank 5 (dp=0,tp=1): WORDS; ranks 0-4,6-7: OTHER WORDS`. Ranks with
/// equal texts are listed together. The text of the fewest ranks comes first; on a tie, ranks that
/// differ from the first rank of the list come first.
std::string list_texts(const std::vector<std::pair<Rank, std::string>>& texts,
                       const RankNames& names);

}  // namespace rankmesh::detail
