// SPDX-License-Identifier: BSD-3-Clause
// What the rules of doctor share: values that differ, nodes, and texts.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "detail/doctor.hpp"

namespace rankmesh::report::detail {

std::vector<Variant> variants(const Examination& job,
                              const std::function<std::string(const RankFacts&)>& value) {
  std::map<std::string, RankList> ranks;
  for (const RankFacts& facts : job.ranks) ranks[value(facts)].push_back(facts.rank);
  std::vector<Variant> result;
  for (auto& [text, list] : ranks) result.push_back({text, std::move(list)});
  // If two values are equally frequent, the value of the lowest rank counts as the usual one.
  std::ranges::sort(result, [](const Variant& a, const Variant& b) {
    if (a.ranks.size() != b.ranks.size()) return a.ranks.size() < b.ranks.size();
    return a.ranks.front() > b.ranks.front();
  });
  return result;
}

RankList outliers(const std::vector<Variant>& all) {
  RankList ranks;
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    ranks.insert(ranks.end(), all[i].ranks.begin(), all[i].ranks.end());
  std::ranges::sort(ranks);
  return ranks;
}

namespace {

constexpr std::size_t most_characters = 200;  // of a value

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns the number of bytes at the beginning that all values that are too long have in common.
std::size_t common_begin(const std::vector<Variant>& all) {
  const std::string* first = nullptr;
  bool has_several = false;
  std::size_t common = std::numeric_limits<std::size_t>::max();
  for (const Variant& variant : all) {
    const std::string& value = variant.value;
    if (value.size() <= most_characters) continue;
    if (first == nullptr) {
      first = &value;
      continue;
    }
    const auto end = std::ranges::mismatch(*first, value).in1;
    common = std::min(common, static_cast<std::size_t>(end - first->begin()));
    has_several = true;
  }
  return has_several ? common : 0;
}

// Returns a value, or the part of it where it differs from others. Control characters could move
// the cursor of a terminal.
std::string shown(const std::string& value, std::size_t common) {
  std::size_t begin = 0, size = value.size();
  if (size > most_characters) {
    if (common > most_characters / 2) begin = common - most_characters / 4;
    while (begin > 0 && continues_character(value[begin])) --begin;
    size = std::min(size - begin, most_characters);
    while (begin + size < value.size() && continues_character(value[begin + size])) --size;
  }
  std::string text = value.substr(begin, size);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return fmt::format("{}{}{}", begin > 0 ? "..." : "", text,
                     begin + size < value.size() ? "..." : "");
}

}  // namespace

std::string to_string(const std::vector<Variant>& all) {
  constexpr std::size_t most_variants = 4;
  const std::size_t common = common_begin(all);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == most_variants) return text + fmt::format("; and {} others", all.size() - i);
    text += fmt::format("{}{}: {}", i == 0 ? "" : "; ", ranks_text(all[i].ranks),
                        shown(all[i].value, common));
  }
  return text;
}

RankList ranks_with(const Examination& job,
                    const std::function<bool(const RankFacts&)>& condition) {
  RankList ranks;
  for (const RankFacts& facts : job.ranks)
    if (condition(facts)) ranks.push_back(facts.rank);
  return ranks;
}

std::map<std::int32_t, Members> by_node(const Examination& job) {
  std::map<std::int32_t, Members> nodes;
  for (const RankFacts& facts : job.ranks) nodes[facts.node].push_back(&facts);
  return nodes;
}

std::size_t node_count(const Examination& job) { return by_node(job).size(); }

RankList ranks_of(const Members& members) {
  RankList ranks;
  for (const RankFacts* facts : members) ranks.push_back(facts->rank);
  return ranks;
}

std::set<int> cores_of(const Members& members) {
  std::set<int> cores;
  for (const RankFacts* facts : members) cores.insert(facts->cores.begin(), facts->cores.end());
  return cores;
}

RankSet set_of(const RankList& ranks) {
  return RankSet::of(std::vector<Rank>(ranks.begin(), ranks.end()));
}

std::string ranks_text(const RankList& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", set_of(ranks).to_string(100));
}

std::optional<std::string> variable(const RankFacts& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  if (found == facts.variables.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::vector<std::string> items(const std::string& list) {
  std::vector<std::string> result(1);
  for (const char c : list) {
    if (c == ',')
      result.emplace_back();
    else
      result.back() += c;
  }
  std::erase(result, "");
  return result;
}

std::string size_text(std::int64_t bytes) {
  if (bytes < 0) return "unlimited";
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (size >= 1024 && unit + 1 < std::size(units)) {
    size /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", size, units[unit]);
}

Finding finding(const Rule& rule, RankList ranks, std::string what, std::string why,
                std::string fix) {
  return {.id = std::string{rule.id},
          .severity = rule.severity,
          .ranks = std::move(ranks),
          .what = std::move(what),
          .why = std::move(why),
          .fix = std::move(fix)};
}

Findings differing(const Rule& rule, const std::vector<Variant>& values, std::string_view what,
                   std::string why, std::string fix) {
  if (values.size() < 2) return {};
  return {finding(rule, outliers(values), fmt::format("{}: {}", what, to_string(values)),
                  std::move(why), std::move(fix))};
}

Findings findings_of(const Rule& rule, const std::map<std::string, RankList>& wrong,
                     const std::string& why, const std::string& fix) {
  Findings findings;
  for (const auto& [what, ranks] : wrong) findings.push_back(finding(rule, ranks, what, why, fix));
  return findings;
}

}  // namespace rankmesh::report::detail
