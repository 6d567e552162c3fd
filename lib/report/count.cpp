// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/count.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/picture.hpp"
#include "rankmesh/place/spread.hpp"
#include "rankmesh/report/show.hpp"

namespace rankmesh::report {
namespace {

std::string number(std::int64_t value) {
  // The counts saturate there.
  return value == std::numeric_limits<std::int64_t>::max() ? ">= 9223372036854775807"
                                                           : fmt::format("{}", value);
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
  return __builtin_mul_overflow(per_rank, world_size, &result)
             ? std::numeric_limits<std::int64_t>::max()
             : result;
}

Table figures(const PlanCounts& counts) {
  using enum Table::Align;
  Table table{
      .columns = {{"figure", left}, {"rankmesh", right}, {"every group on every rank", right}}};
  const std::string groups = number(counts.groups);
  const auto add = [&](std::string figure, std::string ours, std::string naive) {
    table.rows.push_back({std::move(figure), std::move(ours), std::move(naive)});
  };
  add("creations that each rank issues", number(counts.splits),
      number(counts.naive_creations_per_rank()));
  add("creations in all", number(in_all(counts.splits, counts.world_size)),
      number(counts.naive_creations()));
  add(fmt::format("communicators of {}", whose(counts.communicators_per_rank)),
      range(counts.communicators_per_rank), range(counts.groups_per_rank));
  add("communicators in all", number(counts.communicators), groups);
  add("unique IDs", number(counts.unique_ids), groups);
  add("broadcasts of an ID", number(counts.broadcasts()), groups);
  return table;
}

Value json_of(const PlanCounts::PerRank& figure) {
  Value json{{"least", figure.least}, {"most", figure.most}};
  if (!figure.covers_all) json["rank"] = 0;
  return json;
}

Value count_fields(const MeshPlan& plan, const PlanCounts& counts) {
  return {{"mesh", views_text(plan)},
          {"world_size", counts.world_size},
          {"names", counts.names},
          {"groups", counts.groups},
          {"distinct_groups", counts.distinct_groups},
          {"repeated_groups", counts.repeated_groups()},
          {"groups_of_one", counts.groups_of_one},
          {"overlapping_groups", counts.overlapping_groups},
          {"groups_per_rank", json_of(counts.groups_per_rank)},
          {"creations_per_rank", counts.splits},
          {"creations", in_all(counts.splits, counts.world_size)},
          {"communicators_per_rank", json_of(counts.communicators_per_rank)},
          {"communicators", counts.communicators},
          {"unique_ids", counts.unique_ids},
          {"broadcasts", counts.broadcasts()},
          {"every_group_on_every_rank",
           Value{{"creations_per_rank", counts.naive_creations_per_rank()},
                 {"creations", counts.naive_creations()},
                 {"communicators_per_rank", json_of(counts.groups_per_rank)},
                 {"communicators", counts.groups},
                 {"unique_ids", counts.groups},
                 {"broadcasts", counts.groups}}}};
}

// The number of groups, of all names, that lie inside one unit of each level.
std::vector<std::int64_t> groups_inside(const MeshPlan& plan, const Machine& machine) {
  std::vector<std::int64_t> inside(machine.levels().size());
  for (const GroupFamily& family : plan.families()) {
    const std::vector<LevelSpread> spreads = spread_of(family, machine);
    for (std::size_t l = 0; l < inside.size(); ++l) inside[l] += spreads[l].inside;
  }
  return inside;
}

void add_places(const MeshPlan& plan, const PlanCounts& counts, const Machine& machine,
                Document& document) {
  const std::vector<std::int64_t> inside = groups_inside(plan, machine);
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
  Document document{
      .schema = "rankmesh.count/1", .fields = count_fields(plan, counts), .table = figures(counts)};
  std::string views = views_text(plan);
  if (views.size() > 400) {
    views.resize(400);
    views += "...";
  }
  document.add_bold("count");
  document.add(
      fmt::format("  {}   {}\n\n", views, rankmesh::detail::count_text(counts.world_size, "rank")));
  document.add(
      fmt::format("  {} names with {} groups: {} distinct, {} repeat another, {} have one rank\n",
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
  document.picture = detail::picture_of(plan, machine);
  document.picture->notes.push_back(fmt::format(
      "{} with {}, of which {} are distinct; {} is in {} groups, and has {} communicators",
      rankmesh::detail::count_text(counts.names, "name"),
      rankmesh::detail::count_text(counts.groups, "group"), number(counts.distinct_groups),
      whose(counts.groups_per_rank), range(counts.groups_per_rank),
      range(counts.communicators_per_rank)));
  return document;
}

}  // namespace rankmesh::report
