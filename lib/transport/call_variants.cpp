// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_variants.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rankmesh::detail {
namespace {

std::string ranks_text(const RankSet& group, const RankNames& names,
                       const std::vector<std::size_t>& members) {
  std::vector<Rank> ranks;
  for (const std::size_t member : members)
    ranks.push_back(group.at(static_cast<std::int64_t>(member)));
  if (ranks.size() == 1) return "rank " + names(ranks.front());
  return "ranks " + RankSet::of(ranks).to_string(60);
}

}  // namespace

std::string list_calls(const RankSet& ranks, const RankNames& names,
                       const std::vector<std::string>& calls) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> variants;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    if (calls[k].empty()) continue;
    auto same = std::ranges::find(variants, calls[k], [](const auto& v) { return v.first; });
    if (same == variants.end()) same = variants.insert(same, {calls[k], {}});
    same->second.push_back(k);
  }
  if (variants.empty()) return {};
  // On a tie, members that differ from member 0 come first.
  std::ranges::rotate(variants, variants.begin() + 1);
  std::ranges::stable_sort(variants, {}, [](const auto& v) { return v.second.size(); });
  std::vector<std::string> parts;
  for (const auto& [text, members] : variants)
    parts.push_back(ranks_text(ranks, names, members) + ": " + text);
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace rankmesh::detail
