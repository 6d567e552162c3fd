// SPDX-License-Identifier: BSD-3-Clause
#include "check.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "place/count.hpp"
#include "place/diff.hpp"
#include "place/mesh_file.hpp"
#include "report/reports.hpp"
#include "report/write.hpp"
#include "require.hpp"

using rankmesh::Coverage;
using rankmesh::GroupFamily;
using rankmesh::GroupIndex;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;
using rankmesh::Rank;
using rankmesh::RankSet;

namespace fuzz {
namespace {

constexpr std::int64_t small_world = 64;  // up to this size every rank is checked
constexpr std::int64_t few = 4;           // above it: this many at the front and at the back

// Returns 0 .. n-1 in a small world, else numbers from both ends.
std::vector<std::int64_t> some_of(std::int64_t n, std::int64_t world) {
  std::vector<std::int64_t> result;
  const bool whole = world <= small_world || n <= 2 * few;
  for (std::int64_t i = 0; i < (whole ? n : few); ++i) result.push_back(i);
  if (!whole)
    for (std::int64_t i = n - few; i < n; ++i) result.push_back(i);
  return result;
}

// Checks that at and index_of are inverse, and that a partition has every rank of a small
// world once.
void check_family(const GroupFamily& family, std::int64_t world) {
  require(family.group_count() > 0 && family.group_size() > 0, "no groups", family.name());
  const bool is_partition = family.coverage(world) == Coverage::partition;
  const bool is_overlapping = family.coverage(world) == Coverage::overlapping;
  std::multiset<std::int64_t> seen;
  for (const std::int64_t g : some_of(family.group_count(), world)) {
    const RankSet ranks = family.group(g);
    require(!ranks.empty() && ranks.size() <= family.group_size(), "size of a group",
            family.name());
    require(!family.is_uniform() || ranks.size() == family.group_size(), "uniform", family.name());
    for (const std::int64_t k : some_of(ranks.size(), world)) {
      const Rank rank = ranks.at(k);
      require(rank.value() >= 0 && rank.value() < world, "a rank outside the world", family.name());
      const GroupIndex place{g, rankmesh::RankInGroup{k}};
      const auto places = family.find_all(rank);
      require(std::ranges::find(places, place) != places.end(), "find_all loses a place",
              family.name());
      require(is_overlapping || family.find(rank) == place, "find is no inverse of group",
              family.name());
      seen.insert(rank.value());
    }
    const auto found = family.find_group(ranks);
    require(is_overlapping || found == g, "find_group is no inverse of group", family.name());
  }
  if (!is_partition || world > small_world) return;
  require(static_cast<std::int64_t>(seen.size()) == world, "a partition misses ranks",
          family.name());
  for (std::int64_t rank = 0; rank < world; ++rank)
    require(seen.count(rank) == 1, "a partition has a rank twice", family.name());
}

void check_rank(const MeshPlan& plan, Rank rank) {
  for (const auto& view : plan.views())
    if (const auto coordinates = view.coordinates(rank))
      require(view.rank(*coordinates) == rank, "coordinates", plan.describe(rank));
  std::size_t places = 0;
  for (const GroupFamily& family : plan.families()) places += family.find_all(rank).size();
  const auto memberships = plan.memberships(rank);
  require(memberships.size() == places, "memberships", plan.describe(rank));
  for (const auto& m : memberships) {
    require(m.ranks.at(m.place.rank_in_group.value()) == rank, "membership", plan.describe(rank));
    require(plan.leader(m.family, m.place.group).value() < m.ranks.size(), "leader",
            plan.describe(rank));
  }
  for (const auto& use : plan.communicators(rank))
    require(use.ranks.size() > 1 && use.ranks.contains(rank) && !use.families.empty(),
            "communicators", plan.describe(rank));
}

// Makes all reports that are fast for any plan.
void check_reports(const MeshPlan& plan) {
  namespace report = rankmesh::report;
  using enum report::Format;
  const auto require_forms = [](const report::Document& document, const char* name) {
    for (const auto format : {text, json, csv})
      require(!report::to_string(document, format).empty(), name);
  };
  require_forms(report::show(plan, nullptr), "show");
  require_forms(report::explain_order(plan), "order");
  const Rank last = plan.world_size() - 1;
  require(!report::to_string(report::rank(plan, last, nullptr), text).empty(), "rank");
  require_forms(report::explain_rank(plan, last), "explain");
  if (plan.world_size() > small_world) return;
  std::vector<report::NamedFamily> families;
  std::int64_t groups = 0;
  for (const GroupFamily& family : plan.families()) {
    families.emplace_back(family.name(), family);
    groups += family.group_count();
  }
  std::size_t written = 0;
  const auto listing = report::groups(plan, std::move(families));
  for (const auto format : {text, json, csv, report::Format::svg, report::Format::html})
    report::write(listing, format, [&](auto piece) { written += piece.size(); });
  require(written > 0, "groups");
  const auto counts = rankmesh::count(plan);
  require(counts.groups == groups && counts.distinct_groups <= groups, "count");
  require(rankmesh::diff(plan, plan).is_empty(), "a plan differs from itself");
}

void check_plan(const MeshSpec& spec, const MeshPlan& plan) {
  require(plan.world_size() > 0, "the size of the world");
  for (const GroupFamily& family : plan.families()) check_family(family, plan.world_size());
  for (const std::int64_t rank : some_of(plan.world_size(), plan.world_size()))
    check_rank(plan, rank);
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    if (plan.needs_creation(f))
      require(plan.families()[f].group_size() > 1, "a split for groups of one",
              plan.families()[f].name());
  check_reports(plan);
  const std::string file = to_toml(spec);
  const MeshSpec as_file = MeshSpec::parse_toml(file, "printed.toml");
  require(to_toml(as_file) == file, "the canonical file is not canonical", file);
  require(as_file.plan(plan.world_size()).digest() == plan.digest(), "round trip", file);
  require(!spec.describe().empty(), "description");
  if (!spec.fits_string()) return;
  const std::string text = spec.to_string();
  const MeshSpec as_string = MeshSpec::parse_string(text);
  require(as_string.to_string() == text, "the canonical text is not canonical", text);
  require(as_string.plan(plan.world_size()).digest() == plan.digest(), "round trip", text);
}

void check_error(const rankmesh::SpecError& error) {
  require(!error.message().empty(), "an error without a message");
  require(!error.hint().empty(), "an error without a hint", error.message());
}

void check_world(const MeshSpec& spec, std::optional<std::int64_t> world) {
  std::optional<MeshPlan> plan;
  try {
    plan = spec.plan(world);
  } catch (const rankmesh::SpecError& error) {
    check_error(error);
    return;
  }
  require(!world || plan->world_size() == *world, "a world of another size");
  check_plan(spec, *plan);
}

// Splits `text#8` into the text and 8.
std::optional<std::int64_t> take_world(std::string_view& text) {
  const std::size_t mark = text.rfind('#');
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(mark + 1);
  std::int64_t world = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), world);
  if (error != std::errc{} || stop != digits.data() + digits.size()) return std::nullopt;
  text = text.substr(0, mark);
  return world;
}

}  // namespace

void check_input(std::string_view input, const std::function<MeshSpec(std::string_view)>& parse) {
  const auto world = take_world(input);
  std::optional<MeshSpec> spec;
  try {
    spec = parse(input);
  } catch (const rankmesh::SpecError& error) {
    check_error(error);
    return;
  }
  static_cast<void>(spec->world_size());
  check_world(*spec, std::nullopt);
  if (world) check_world(*spec, world);
}

}  // namespace fuzz
