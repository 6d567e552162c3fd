// SPDX-License-Identifier: BSD-3-Clause
#include "detail/rank_activities.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rankmesh::detail {

std::string predicate(const RankActivity& activity, bool is_plural) {
  using Kind = RankActivity::Kind;
  const char* const be = is_plural ? "are" : "is";
  const char* const have = is_plural ? "have" : "has";
  switch (activity.kind) {
    case Kind::silent:
      return fmt::format("{} silent", be);
    case Kind::waits:
      return fmt::format("{} in {}", is_plural ? "wait" : "waits", activity.text);
    case Kind::in_call:
      return fmt::format("{} in {}", be, activity.text);
    case Kind::outside:
      return fmt::format("{} not in rankmesh: computing or blocked elsewhere", be);
    case Kind::stopped:
      return fmt::format("{} stopped", be);
    case Kind::ended:
      return fmt::format("{} ended", have);
    case Kind::failed:
      return fmt::format("{} left the mesh by an exception{}{}", have,
                         activity.text.empty() ? "" : ": ", activity.text);
    case Kind::destroyed:
      return fmt::format("{} destroyed the mesh without close()", have);
    case Kind::closed:
      return fmt::format("{} closed the mesh", have);
  }
  return "?";
}

std::string describe(const std::vector<RankAndActivity>& ranks, const RankNames& names) {
  constexpr std::size_t max_named = 32;
  struct Clause {
    std::string singular, plural;
    std::vector<std::string> subjects;
  };
  std::vector<Clause> clauses;  // in the order of their first ranks
  for (std::size_t i = 0; i < std::min(ranks.size(), max_named); ++i) {
    const std::string singular = predicate(ranks[i].activity, false);
    auto same = std::ranges::find(clauses, singular, &Clause::singular);
    if (same == clauses.end())
      same = clauses.insert(same, {singular, predicate(ranks[i].activity, true), {}});
    same->subjects.push_back(names(ranks[i].rank));
  }
  std::vector<std::string> texts;
  for (const Clause& clause : clauses)
    texts.push_back(fmt::format("rank{} {} {}", clause.subjects.size() == 1 ? "" : "s",
                                fmt::join(clause.subjects, ", "),
                                clause.subjects.size() == 1 ? clause.singular : clause.plural));
  if (ranks.size() > max_named) texts.push_back(fmt::format("{} more", ranks.size() - max_named));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace rankmesh::detail
