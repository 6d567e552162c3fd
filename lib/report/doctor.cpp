// SPDX-License-Identifier: BSD-3-Clause
// How the rules of doctor are applied, and what they share: values that differ, nodes, and texts.
#include "report/doctor.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/doctor.hpp"

namespace rankmesh::report {

const std::vector<Rule>& doctor_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (const auto& part : {detail::process_rules(), detail::node_rules(), detail::device_rules()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rules;
}

namespace {

// Values of variables may have control characters, which could move the cursor of a terminal.
std::string without_controls(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

}  // namespace

std::vector<Finding> examine(const Examination& job) {
  std::vector<Finding> findings;
  for (const Rule& rule : doctor_rules())
    for (Found& found : rule.find(job))
      findings.push_back(
          {.id = std::string{rule.id},
           .severity = rule.severity,
           .ranks = std::move(found.ranks),
           .what = without_controls(std::move(found.what)),
           .why = std::string{rule.why},
           .fix = fmt::format(fmt::runtime(rule.fix), without_controls(found.detail))});
  std::ranges::stable_sort(findings, {}, &Finding::severity);
  return findings;
}

bool has_trouble(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings,
                             [](const Finding& found) { return found.severity != Severity::note; });
}

namespace detail {

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

namespace {

constexpr std::size_t most_characters = 200;  // of a value
constexpr std::ptrdiff_t most_shown = 4;      // texts in a list

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns the number of bytes at the beginning that all values that are too long have in common.
std::size_t common_begin(const std::vector<Variant>& all) {
  const std::string* first = nullptr;
  std::size_t common = std::numeric_limits<std::size_t>::max();
  for (const Variant& variant : all) {
    if (variant.value.size() <= most_characters) continue;
    if (first == nullptr)
      first = &variant.value;
    else
      common =
          std::min(common, static_cast<std::size_t>(
                               std::ranges::mismatch(*first, variant.value).in1 - first->begin()));
  }
  return common == std::numeric_limits<std::size_t>::max() ? 0 : common;
}

// Returns a value, or the part of it where it differs from others.
std::string shown(const std::string& value, std::size_t common) {
  std::size_t begin = 0, size = value.size();
  if (size > most_characters) {
    if (common > most_characters / 2) begin = common - most_characters / 4;
    while (begin > 0 && continues_character(value[begin])) --begin;
    size = std::min(size - begin, most_characters);
    while (begin + size < value.size() && continues_character(value[begin + size])) --size;
  }
  return fmt::format("{}{}{}", begin > 0 ? "..." : "", value.substr(begin, size),
                     begin + size < value.size() ? "..." : "");
}

}  // namespace

std::vector<Found> differing(const std::vector<Variant>& all, std::string_view what,
                             std::string detail) {
  if (all.size() < 2) return {};
  const std::size_t common = common_begin(all);
  RankList outliers;  // all but the ranks with the most frequent value
  std::vector<std::string> texts;
  for (const Variant& variant : all) {
    texts.push_back(fmt::format("{}: {}", ranks_text(variant.ranks), shown(variant.value, common)));
    if (&variant != &all.back())
      outliers.insert(outliers.end(), variant.ranks.begin(), variant.ranks.end());
  }
  std::ranges::sort(outliers);
  if (std::ssize(texts) > most_shown)  // the usual value is the one to compare with
    std::rotate(texts.begin() + (most_shown - 1), texts.end() - 1, texts.end());
  return {{std::move(outliers), fmt::format("{} {}", what, first_of(texts, "; and {} others")),
           std::move(detail)}};
}

Members members_with(const Examination& job,
                     const std::function<bool(const RankFacts&)>& condition) {
  Members members;
  for (const RankFacts& facts : job.ranks)
    if (condition(facts)) members.push_back(&facts);
  return members;
}

std::map<std::int32_t, Members> by_node(const Examination& job) {
  std::map<std::int32_t, Members> nodes;
  for (const RankFacts& facts : job.ranks) nodes[facts.node].push_back(&facts);
  return nodes;
}

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

std::string first_of(const std::vector<std::string>& texts, std::string_view rest) {
  const std::size_t shown = std::min<std::size_t>(most_shown, texts.size());
  std::string text = fmt::format(
      "{}", fmt::join(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (texts.size() > shown) text += fmt::format(fmt::runtime(rest), texts.size() - shown);
  return text;
}

std::optional<std::string> variable(const RankFacts& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  if (found == facts.variables.end() || found->second.empty()) return std::nullopt;
  return found->second;
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

}  // namespace detail
}  // namespace rankmesh::report
