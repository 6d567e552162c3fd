// SPDX-License-Identifier: BSD-3-Clause
#include "detail/rank_texts.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/private_api.hpp"
#include "detail/rank_status.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh::detail {

namespace {

std::string after_calls(std::optional<std::uint64_t> calls) {
  if (!calls) return "";
  return *calls == 0 ? ", before any call of this group"
                     : fmt::format(", after call {} of this group", *calls);
}

}  // namespace

std::vector<Variant> variants_of(const RankTexts& texts) {
  std::vector<Variant> variants;
  for (const auto& [rank, text] : texts) {
    auto same = std::ranges::find(variants, text, &Variant::text);
    if (same == variants.end()) same = variants.insert(same, {text, {}});
    same->ranks.push_back(rank);
  }
  return variants;
}

std::vector<Variant> fewest_first(std::vector<Variant> variants) {
  // The variant of the first rank goes to the end, so that the stable sort puts the ranks that
  // differ from it first on a tie.
  if (!variants.empty()) std::ranges::rotate(variants, variants.begin() + 1);
  std::ranges::stable_sort(variants, {}, [](const Variant& v) { return v.ranks.size(); });
  return variants;
}

RANKMESH_PRIVATE_API std::string list_texts(const RankTexts& texts, const RankNames& names) {
  std::vector<std::string> parts;
  for (Variant& variant : fewest_first(variants_of(texts))) {
    std::ranges::sort(variant.ranks);
    parts.push_back(
        variant.ranks.size() == 1
            ? fmt::format("rank {}: {}", names(variant.ranks.front()), variant.text)
            : fmt::format("ranks {}: {}", RankSet::of(variant.ranks).to_string(60), variant.text));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

RANKMESH_PRIVATE_API std::string predicate(const RankStatus& status, bool is_plural) {
  using Kind = RankStatus::Kind;
  const char* const be = is_plural ? "are" : "is";
  const char* const have = is_plural ? "have" : "has";
  switch (status.kind) {
    case Kind::silent:
      return fmt::format("{} silent: busy elsewhere, or not reachable", be);
    case Kind::waits:
      return fmt::format("{} in {}{}{}", is_plural ? "wait" : "waits", status.text,
                         status.ranks.empty() ? "" : " of ranks " + status.ranks,
                         after_calls(status.calls));
    case Kind::in_call:
      return fmt::format("{} in {}", be, status.text);
    case Kind::outside:
      return fmt::format("{} not in rankmesh: computing or blocked elsewhere", be);
    case Kind::stopped:
      return fmt::format("{} stopped", be);
    case Kind::ended:
      return fmt::format("{} ended", have);
    case Kind::failed:
      return fmt::format("{} left the mesh by an exception{}{}", have,
                         status.text.empty() ? "" : ": ", status.text);
    case Kind::destroyed:
      return fmt::format("{} destroyed the mesh without close()", have);
    case Kind::closed:
      return fmt::format("{} closed the mesh", have);
  }
  return "?";
}

RANKMESH_PRIVATE_API std::string describe(const std::vector<StatusOfRank>& ranks,
                                          const RankNames& names) {
  constexpr std::size_t max_named = 32;
  RankTexts texts;
  std::map<std::string, std::string> plural;
  for (std::size_t i = 0; i < std::min(ranks.size(), max_named); ++i) {
    texts.emplace_back(ranks[i].rank, predicate(ranks[i].status, false));
    plural.emplace(texts.back().second, predicate(ranks[i].status, true));
  }
  std::vector<std::string> clauses;
  for (const Variant& variant : variants_of(texts)) {
    std::vector<std::string> subjects;
    for (const Rank rank : variant.ranks) subjects.push_back(names(rank));
    const bool is_one = subjects.size() == 1;
    clauses.push_back(fmt::format("rank{} {} {}", is_one ? "" : "s", fmt::join(subjects, ", "),
                                  is_one ? variant.text : plural[variant.text]));
  }
  if (ranks.size() > max_named) clauses.push_back(fmt::format("{} more", ranks.size() - max_named));
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace rankmesh::detail
