// SPDX-License-Identifier: BSD-3-Clause
// The groups of a mesh: the reports of groups and describe.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/parts.hpp"
#include "detail/picture.hpp"
#include "rankmesh/base/error.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {

std::string detail::split_text(const LevelSpread& spread, std::int64_t groups) {
  if (spread.split == groups && groups > 1) return "all";
  return split_numbers(spread);
}

Json detail::spread_json(const Machine& machine, const std::vector<LevelSpread>& spreads,
                         std::int64_t groups) {
  Json result;
  for (std::size_t l = 0; l < spreads.size(); ++l)
    result[machine.levels()[l].name] = {{"inside", spreads[l].inside},
                                        {"most_units", spreads[l].most_units},
                                        {"split", split_text(spreads[l], groups)}};
  return result;
}

namespace {

// The picture of these families instead of all families of the plan.
Picture picture_of(const MeshPlan& plan, const Machine* machine,
                   const std::vector<NamedFamily>& families) {
  Picture picture = detail::picture_of(plan, machine);
  picture.states.front().families = families;
  return picture;
}

Table facts_of_ranks(const LiveFacts& live) {
  Table table;
  table.add_columns({"host", "node", "local_rank", "process"});
  if (!live.devices.empty()) table.add_columns({"device"});
  for (std::int64_t r = 0; r < live.placement.world_size(); ++r) {
    const auto index = static_cast<std::size_t>(r);
    const std::int32_t node = live.placement.node(r);
    table.rows.push_back({live.hosts.at(static_cast<std::size_t>(node)), node,
                          live.placement.local_rank(r), live.process_ids.at(index)});
    if (!live.devices.empty()) table.rows.back().emplace_back(live.devices.at(index));
  }
  return table;
}

}  // namespace

Document groups(const MeshPlan& plan, std::vector<NamedFamily> families, const LiveFacts* live) {
  const auto nodes = live == nullptr ? std::nullopt : std::optional{detail::machine_of(*live)};
  Document document{.schema = "rankmesh.groups/1", .fields = {{"world_size", plan.world_size()}}};
  if (live != nullptr) document.of_ranks = facts_of_ranks(*live);
  document.picture = picture_of(plan, nodes ? &*nodes : nullptr, families);
  document.groups = std::move(families);
  return document;
}

Document group_places(const MeshPlan& plan, const std::vector<NamedFamily>& families,
                      const Machine& machine) {
  Document document{.schema = "rankmesh.group_places/1",
                    .fields = {{"world_size", plan.world_size()}, {"machine", machine.describe()}}};
  document.table.columns = {{.title = "name", .level = 1}};
  document.table.add_columns({"group", "size"}, right);
  for (const MachineLevel& level : machine.levels())
    document.table.add_columns({plural(level.name)}, right);
  document.table.columns.push_back({.title = "ranks", .most = 60});
  Json& groups = document.fields["groups"];
  for (const auto& [name, family] : families) {
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const Ranks ranks{family.group(g)};
      std::vector<Cell> row{name, g, ranks.set.size()};
      Json units = Json::object();
      for (std::size_t l = 0; l < machine.levels().size(); ++l) {
        units[machine.levels()[l].name] = units_of(ranks.set, machine, l);
        row.emplace_back(units.back());
      }
      row.emplace_back(ranks);
      document.table.rows.push_back(std::move(row));
      groups[name].push_back({{"ranks", ranks}, {"units", std::move(units)}});
    }
  }
  document.add(fmt::format("{}\n\n", machine.describe()));
  document.text.emplace_back(TableHere{});
  document.picture = picture_of(plan, &machine, families);
  return document;
}

namespace {

constexpr std::size_t most_rows = 32;    // of groups or members, in text
constexpr std::size_t most_ranks = 80;   // characters of a list of ranks in text
constexpr std::size_t most_listed = 24;  // nodes of a group

// The coordinates that all members share, and the dimensions along which they differ.
struct Coordinates {
  std::vector<std::string> fixed;    // "pp=0"
  std::vector<std::string> varying;  // "tp"
};

Coordinates coordinates_of(const MeshPlan& plan, const RankSet& ranks) {
  Coordinates result;
  const auto first = plan.coordinates(ranks.front());
  std::vector<bool> differs(first.size());
  ranks.for_each([&](Rank rank) {
    const auto other = plan.coordinates(rank);
    for (std::size_t i = 0; i < first.size(); ++i)
      if (other.size() != first.size() || other[i] != first[i]) differs[i] = true;
  });
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (differs[i])
      result.varying.push_back(first[i].first);
    else
      result.fixed.push_back(fmt::format("{}={}", first[i].first, first[i].second.value()));
  }
  return result;
}

std::string joined(const std::vector<std::string>& words, const char* none) {
  return words.empty() ? none : fmt::format("{}", fmt::join(words, ", "));
}

// "h0: 0-3; h1: 4-7": the ranks of the group on each node.
std::string nodes_text(const RankSet& ranks, const LiveFacts& live) {
  std::map<std::int32_t, std::vector<Rank>> by_node;
  ranks.for_each([&](Rank rank) { by_node[live.placement.node(rank)].push_back(rank); });
  std::vector<std::string> parts;
  for (const auto& [node, members] : by_node) {
    if (parts.size() == most_listed) {
      parts.push_back(fmt::format("and {} more nodes", by_node.size() - most_listed));
      break;
    }
    parts.push_back(fmt::format("{}: {}", live.hosts.at(static_cast<std::size_t>(node)),
                                RankSet::of(members).to_string(most_ranks)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<std::size_t> index_in(const MeshPlan& plan, std::string_view name) {
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    if (plan.families()[f].name() == name) return f;
  return std::nullopt;  // a product of dimensions
}

// Which communicator the groups use, in a sentence.
std::string communicator_text(const MeshPlan& plan, const GroupFamily& family) {
  const auto index = index_in(plan, family.name());
  if (!index) return "none: the mesh has no name for these groups";
  if (family.coverage(plan.world_size()) == Coverage::overlapping)
    return "none: the groups overlap";
  if (!plan.has_communicators(*index)) return "none: a group of one rank needs none";
  if (plan.needs_creation(*index)) return "its own";
  for (std::size_t f = 0; f < *index; ++f)
    if (plan.families()[f].has_same_groups(family))
      return fmt::format("shared with {}, which has the same groups", plan.families()[f].name());
  return "shared with an earlier name that has the same groups";
}

std::string_view cover_text(Coverage coverage) {
  return name_in({"every rank is in exactly one group", "some ranks are in no group",
                  "some ranks are in several groups"},
                 coverage);
}

// The other names that have exactly these groups.
std::vector<std::string> equal_names(const MeshPlan& plan, const GroupFamily& family) {
  std::vector<std::string> names;
  for (const GroupFamily& other : plan.families())
    if (other.name() != family.name() && other.has_same_groups(family))
      names.push_back(other.name());
  return names;
}

std::string options_of(const MeshPlan& plan, const GroupFamily& family) {
  const auto index = index_in(plan, family.name());
  if (!index || plan.options(*index) == GroupOptions{}) return {};
  return plan.options(*index).to_string();
}

void add_fact(Document& document, const char* title, std::string_view text) {
  if (text.empty()) return;
  document.add(fmt::format("  {:<14}{}\n", title, text));
  std::string key = title;
  std::ranges::replace(key, ' ', '_');
  document.fields[key] = text;
}

// Adds a row for each group. Computing the coordinates of all ranks takes time, so in a large world
// only the rows of the text have them.
void add_groups(const MeshPlan& plan, const GroupFamily& family, const LiveFacts* live,
                Table& table) {
  constexpr std::int64_t most_groups = 65536, most_ranks_computed = 1 << 20;
  const std::int64_t groups = std::min(family.group_count(), most_groups);
  for (std::int64_t g = 0; g < groups; ++g) {
    const RankSet ranks = family.group(g);
    const bool has_coordinates =
        plan.world_size() <= most_ranks_computed ||
        static_cast<std::int64_t>(table.rows.size() + 1) * ranks.size() <= most_ranks_computed;
    table.rows.push_back(
        {g, ranks.size(), Ranks{ranks, 1000},
         has_coordinates ? Json(joined(coordinates_of(plan, ranks).fixed, "")) : Json()});
    if (live != nullptr) table.rows.back().emplace_back(live->placement.nodes_of(ranks));
  }
}

}  // namespace

Document describe_family(const MeshPlan& plan, std::string_view name, const LiveFacts* live) {
  const GroupFamily family = plan.groups_of_product(name);
  Document document{.schema = "rankmesh.family/1",
                    .fields = {{"name", family.name()},
                               {"groups", family.group_count()},
                               {"size", family.group_size()}}};
  document.add_bold(family.name());
  document.add(fmt::format("  {} of {}{}\n", count_text(family.group_count(), "group"),
                           family.is_uniform() ? "" : "up to ",
                           count_text(family.group_size(), "rank")));
  add_fact(document, "covers", cover_text(family.coverage(plan.world_size())));
  add_fact(document, "varies", joined(family.dimensions(), "as listed"));
  if (const auto stride = family.stride()) {
    document.add(fmt::format("  {:<14}{}\n", "stride", *stride));
    document.fields["stride"] = *stride;
  }
  add_fact(document, "same as", joined(equal_names(plan, family), ""));
  add_fact(document, "communicator", communicator_text(plan, family));
  add_fact(document, "options", options_of(plan, family));
  document.table.add_columns({"group", "size"}, right);
  document.table.columns.push_back({.title = "ranks", .most = most_ranks});
  document.table.add_columns({"coordinates"});
  if (live != nullptr) document.table.add_columns({"nodes"});
  add_groups(plan, family, live, document.table);
  document.add("\n");
  document.add_table(most_rows, static_cast<std::size_t>(family.group_count()), "groups");
  return document;
}

Document describe_group(const MeshPlan& plan, std::string_view name, std::int64_t group,
                        const LiveFacts* live) {
  const GroupFamily family = plan.groups_of_product(name);
  if (group < 0 || group >= family.group_count())
    throw UsageError{fmt::format("'{}' has no group {}", family.name(), group),
                     fmt::format("its groups are 0 to {}", family.group_count() - 1)};
  const RankSet ranks = family.group(group);
  constexpr std::int64_t most_members = 1 << 20;
  if (ranks.size() > most_members)
    throw UsageError{fmt::format("group {} of '{}' has {} ranks, which are too many to describe",
                                 group, family.name(), ranks.size()),
                     "meshinfo groups lists them"};
  const Coordinates coordinates = coordinates_of(plan, ranks);
  Document document{.schema = "rankmesh.group/1",
                    .fields = {{"name", family.name()},
                               {"group", group},
                               {"size", ranks.size()},
                               {"members", Json::array()}}};
  document.add_bold(fmt::format("{}:{}", family.name(), group));
  document.add(fmt::format("  group {} of {} with {}\n", group, family.group_count(),
                           count_text(ranks.size(), "rank")));
  add_fact(document, "ranks", ranks.to_string(most_ranks));
  add_fact(document, "varies", joined(coordinates.varying, "nothing"));
  add_fact(document, "fixed", joined(coordinates.fixed, "nothing"));
  add_fact(document, "communicator", communicator_text(plan, family));
  add_fact(document, "options", options_of(plan, family));
  if (live != nullptr) add_fact(document, "nodes", nodes_text(ranks, *live));
  document.table.add_columns({"rank in group", "rank"}, right);
  document.table.add_columns({"coordinates"});
  if (live != nullptr) document.table.add_columns({"host", "local rank", "process"});
  std::int64_t place = 0;
  ranks.for_each([&](Rank rank) {
    std::vector<Cell> row{place++, rank.value(), plan.describe(rank)};
    if (live != nullptr) {
      row.emplace_back(live->hosts.at(static_cast<std::size_t>(live->placement.node(rank))));
      row.emplace_back(live->placement.local_rank(rank));
      row.emplace_back(live->process_ids.at(static_cast<std::size_t>(rank.value())));
    }
    document.fields["members"].push_back(rank.value());
    document.table.rows.push_back(std::move(row));
  });
  document.add("\n");
  document.add_table(most_rows, static_cast<std::size_t>(ranks.size()), "members");
  return document;
}

}  // namespace rankmesh::report
