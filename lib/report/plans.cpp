// SPDX-License-Identifier: BSD-3-Clause
// The figures of a mesh, and the differences of two: the reports of count and diff.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/parts.hpp"
#include "detail/picture.hpp"
#include "place/spread.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

constexpr std::int64_t saturated = std::numeric_limits<std::int64_t>::max();

std::string number(std::int64_t value) {
  return value == saturated ? ">= 9223372036854775807" : fmt::format("{}", value);
}

std::string range(const PlanCounts::PerRank& figure) {
  return figure.least == figure.most ? number(figure.least)
                                     : fmt::format("{}-{}", figure.least, figure.most);
}

std::string whose(const PlanCounts::PerRank& figure) {
  return figure.covers_all ? "a rank" : "rank 0";
}

Json json_of(const PlanCounts::PerRank& figure) {
  Json json{{"least", figure.least}, {"most", figure.most}};
  if (!figure.covers_all) json["rank"] = 0;
  return json;
}

// Adds a figure to the table, and to the JSON of rankmesh and of a program in which every rank
// creates every group.
struct Figures {
  Document& document;
  Json naive{};

  void add(const std::string& title, const char* key, std::int64_t ours, std::int64_t theirs) {
    add(title, key, number(ours), number(theirs), ours, theirs);
  }
  void add(const std::string& title, const char* key, std::string ours, std::string theirs,
           Json our_value, Json their_value) {
    document.table.rows.push_back({title, std::move(ours), std::move(theirs)});
    document.fields[key] = std::move(our_value);
    naive[key] = std::move(their_value);
  }
};

void add_figures(const PlanCounts& counts, Document& document) {
  document.table.add_columns({"figure"});
  document.table.add_columns({"rankmesh", "every group on every rank"}, Table::Align::right);
  Figures figures{document};
  const PlanCounts::PerRank& ours = counts.communicators_per_rank;  // each by one call
  const std::int64_t groups = counts.naive_creations_per_rank();
  figures.add(fmt::format("creations that {} issues", ours.covers_all ? "each rank" : "rank 0"),
              "creations_per_rank", range(ours), number(groups), ours.most, groups);
  figures.add("creations in all", "creations", counts.creations, counts.naive_creations());
  figures.add(fmt::format("communicators of {}", whose(counts.communicators_per_rank)),
              "communicators_per_rank", range(counts.communicators_per_rank),
              range(counts.groups_per_rank), json_of(counts.communicators_per_rank),
              json_of(counts.groups_per_rank));
  figures.add("communicators in all", "communicators", counts.communicators, counts.groups);
  figures.add("unique IDs", "unique_ids", counts.unique_ids, counts.groups);
  figures.add("broadcasts of an ID", "broadcasts", counts.broadcasts(), counts.groups);
  document.fields["every_group_on_every_rank"] = std::move(figures.naive);
}

// Adds the number of groups, of all names, that lie inside one unit of each level.
void add_places(const MeshPlan& plan, const PlanCounts& counts, const Machine& machine,
                Document& document) {
  std::vector<std::int64_t> inside(machine.levels().size());
  for (const GroupFamily& family : plan.families()) {
    const std::vector<LevelSpread> spreads = spread_of(family, machine);
    for (std::size_t l = 0; l < inside.size(); ++l) inside[l] += spreads[l].inside;
  }
  document.fields["machine"] = machine.describe();
  document.add(fmt::format("  machine: {}\n", machine.describe()));
  for (std::size_t l = 0; l < inside.size(); ++l) {
    const std::string& name = machine.levels()[l].name;
    document.fields["groups_inside"][name] = inside[l];
    document.add(
        fmt::format("  {} of {} groups lie in one {}\n", inside[l], number(counts.groups), name));
  }
}

}  // namespace

Document count(const MeshPlan& plan, const PlanCounts& counts, const Machine* machine) {
  Document document{.schema = "rankmesh.count/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", counts.world_size},
                               {"names", counts.names},
                               {"groups", counts.groups},
                               {"distinct_groups", counts.distinct_groups},
                               {"repeated_groups", counts.repeated_groups()},
                               {"groups_of_one", counts.groups_of_one},
                               {"overlapping_groups", counts.overlapping_groups},
                               {"groups_per_rank", json_of(counts.groups_per_rank)}}};
  add_figures(counts, document);
  document.add_line("count", title_of(plan, 400));
  document.add(
      fmt::format("\n  {} names with {} groups: {} distinct, {} repeat another, {} have one rank\n",
                  counts.names, number(counts.groups), number(counts.distinct_groups),
                  counts.repeated_groups(), number(counts.groups_of_one)));
  document.add(fmt::format("  {} is in {} groups\n", whose(counts.groups_per_rank),
                           range(counts.groups_per_rank)));
  if (counts.overlapping_groups > 0)
    document.add(
        fmt::format("  {} groups belong to overlapping families, which have no communicators\n",
                    number(counts.overlapping_groups)));
  if (machine != nullptr) add_places(plan, counts, *machine, document);
  document.add("\n");
  document.text.emplace_back(TableHere{});
  document.picture = detail::picture_of(
      plan, machine,
      {fmt::format("{} with {}, of which {} are distinct; {} is in {} groups, and has {} "
                   "communicators",
                   count_text(counts.names, "name"), count_text(counts.groups, "group"),
                   number(counts.distinct_groups), whose(counts.groups_per_rank),
                   range(counts.groups_per_rank), range(counts.communicators_per_rank))});
  return document;
}

namespace {

std::string_view key_of(NameChange change) {
  return name_in({"same", "listing", "order", "groups", "only_a", "only_b"}, change);
}
std::string_view sentence_of(NameChange change) {
  return name_in({"same", "listed in another order", "ranks in another order", "other groups",
                  "only in A", "only in B"},
                 change);
}

std::string number(const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{}", *value) : "?";
}

// One of the meshes.
struct Side {
  const char* name;
  const char* key;
  const MeshPlan& plan;
  NameChange without;  // of the names that this mesh lacks
  std::int64_t NameDiff::*groups;
};

// Adds an object of JSON, and a row if the name differs.
void add_name(const NameDiff& name, const std::vector<Side>& sides, const Machine* machine,
              Document& document) {
  const bool is_in_both = name.change != NameChange::only_a && name.change != NameChange::only_b;
  Json entry{{"name", name.name}, {"change", key_of(name.change)}};
  std::vector<Cell> row{name.name, sentence_of(name.change)};
  for (const Side& side : sides) {
    const bool is_there = name.change != side.without;
    row.emplace_back(is_there ? fmt::format("{}", name.*side.groups) : "-");
    if (is_there) entry[std::string{"groups_"} + side.key] = name.*side.groups;
  }
  if (is_in_both) {
    entry["surviving"] = name.surviving;
    entry["changed_ranks"] = name.changed_ranks;
  }
  row.emplace_back(is_in_both ? number(name.surviving) : "-");
  row.emplace_back(is_in_both ? number(name.changed_ranks) : "-");
  row.emplace_back(fmt::format("{}", fmt::join(name.found_as, ", ")));
  if (!name.found_as.empty()) entry["found_as"] = name.found_as;
  if (machine != nullptr) {
    std::vector<std::vector<LevelSpread>> spreads;  // in A and B
    for (const Side& side : sides) {
      spreads.emplace_back();
      if (name.change == side.without) continue;
      spreads.back() = spread_of(side.plan.groups(name.name), *machine);
      entry[std::string{"place_"} + side.key] =
          detail::spread_json(*machine, spreads.back(), name.*side.groups);
    }
    for (std::size_t l = 0; l < machine->levels().size(); ++l)
      for (const auto& spread : spreads)
        row.emplace_back(spread.empty() ? "-" : fmt::format("{}", spread[l].inside));
  }
  if (name.change != NameChange::same) document.table.rows.push_back(std::move(row));
  document.fields["names"].push_back(std::move(entry));
}

void add_text(const PlanDiff& difference, const std::string& a, const std::string& b,
              const Machine* machine, Document& document) {
  document.add(fmt::format(
      "A  {}   {} ranks\nB  {}   {} ranks\n{}\n", a, difference.world_a, b, difference.world_b,
      machine == nullptr ? "" : fmt::format("machine  {}\n", machine->describe())));
  if (!document.table.rows.empty()) {
    document.text.emplace_back(TableHere{});
    document.add("\n");
  }
  std::vector<std::string> same;
  for (const NameDiff& name : difference.names)
    if (name.change == NameChange::same) same.push_back(name.name);
  document.add(same.empty() ? "  no name has the same groups in both\n"
                            : fmt::format("  the same in both: {}\n", fmt::join(same, ", ")));
  document.add(difference.changed_ranks
                   ? fmt::format("  {} of {} ranks change groups of a name that both have\n",
                                 *difference.changed_ranks,
                                 std::max(difference.world_a, difference.world_b))
                   : "  the world is too large to count the ranks that change groups\n");
}

// Without a machine, the boxes are the coordinates of A.
Picture picture_of(const PlanDiff& difference, const std::vector<Side>& sides, const std::string& a,
                   const std::string& b, const Machine* machine) {
  Picture picture{.title = fmt::format("A {} and B {}", a, b)};
  if (machine != nullptr) picture.machine = *machine;
  for (const NameDiff& name : difference.names)
    picture.notes.push_back(fmt::format("{}: {}{}", name.name, sentence_of(name.change),
                                        name.changed_ranks && *name.changed_ranks > 0
                                            ? fmt::format(", {} ranks change", *name.changed_ranks)
                                            : ""));
  for (const Side& side : sides) {
    picture.states.push_back(detail::state_of(side.plan));
    picture.states.back().name = side.name;
  }
  return picture;
}

}  // namespace

Document diff(const PlanDiff& difference, const MeshPlan& plan_a, const MeshPlan& plan_b,
              const std::string& a, const std::string& b, const Machine* machine) {
  const std::vector<Side> sides{{"A", "a", plan_a, NameChange::only_b, &NameDiff::groups_a},
                                {"B", "b", plan_b, NameChange::only_a, &NameDiff::groups_b}};
  Document document{.schema = "rankmesh.diff/1",
                    .fields = {{"a", {{"mesh", a}, {"world_size", difference.world_a}}},
                               {"b", {{"mesh", b}, {"world_size", difference.world_b}}},
                               {"equal", difference.is_empty()},
                               {"changed_ranks", difference.changed_ranks},
                               {"names", Json::array()}}};
  if (machine != nullptr) document.fields["machine"] = machine->describe();
  Table& table = document.table;
  table.add_columns({"name", "what differs"});
  table.add_columns({"groups in A", "in B", "survive", "ranks that change"}, right);
  table.add_columns({"the other has them as"});
  for (std::size_t l = 0; machine != nullptr && l < machine->levels().size(); ++l)
    for (const Side& side : sides)
      table.add_columns({fmt::format("in one {}, {}", machine->levels()[l].name, side.name)},
                        right);
  for (const NameDiff& name : difference.names) add_name(name, sides, machine, document);
  if (!difference.is_empty()) add_text(difference, a, b, machine, document);
  document.picture = picture_of(difference, sides, a, b, machine);
  return document;
}

}  // namespace rankmesh::report
