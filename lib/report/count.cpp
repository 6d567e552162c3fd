// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/detail/text.hpp"
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

std::int64_t in_all(std::int64_t per_rank, std::int64_t world_size) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(per_rank, world_size, &result) ? saturated : result;
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
  figures.add("creations that each rank issues", "creations_per_rank", counts.splits,
              counts.naive_creations_per_rank());
  figures.add("creations in all", "creations", in_all(counts.splits, counts.world_size),
              counts.naive_creations());
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
  using rankmesh::detail::count_text;
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

}  // namespace rankmesh::report
