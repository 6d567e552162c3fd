// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/diff.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/picture.hpp"
#include "detail/place.hpp"

namespace rankmesh::report {
namespace {

std::string_view sentence(NameChange change) {
  switch (change) {
    case NameChange::same:
      return "same";
    case NameChange::listing:
      return "listed in another order";
    case NameChange::order:
      return "ranks in another order";
    case NameChange::groups:
      return "other groups";
    case NameChange::only_a:
      return "only in A";
    case NameChange::only_b:
      return "only in B";
  }
  return "?";
}

std::string_view key(NameChange change) {
  constexpr std::string_view keys[] = {"same", "listing", "order", "groups", "only_a", "only_b"};
  return keys[static_cast<std::size_t>(change)];
}

std::string number(const std::optional<std::int64_t>& value) {
  return value ? fmt::format("{}", *value) : "?";
}

Table names_table(const PlanDiff& difference) {
  using enum Table::Align;
  Table table{.columns = {{"name", left},
                          {"what differs", left},
                          {"groups in A", right},
                          {"in B", right},
                          {"survive", right},
                          {"ranks that change", right},
                          {"the other has them as", left}}};
  for (const NameDiff& name : difference.names) {
    if (name.change == NameChange::same) continue;
    const bool is_in_both = name.change != NameChange::only_a && name.change != NameChange::only_b;
    table.rows.push_back(
        {name.name, sentence(name.change),
         name.change == NameChange::only_b ? "-" : fmt::format("{}", name.groups_a),
         name.change == NameChange::only_a ? "-" : fmt::format("{}", name.groups_b),
         is_in_both ? number(name.surviving) : "-", is_in_both ? number(name.changed_ranks) : "-",
         fmt::format("{}", fmt::join(name.found_as, ", "))});
  }
  return table;
}

// Where the groups of a family lie in A and in B; empty where it does not exist.
struct PlacesInBoth {
  std::vector<LevelSpread> a{}, b{};
};

std::vector<PlacesInBoth> places_of(const PlanDiff& difference, const MeshPlan& plan_a,
                                    const MeshPlan& plan_b, const Machine& machine) {
  std::vector<PlacesInBoth> places;
  for (const NameDiff& name : difference.names) {
    places.emplace_back();
    if (name.change != NameChange::only_b)
      places.back().a = spread_of(plan_a.groups(name.name), machine);
    if (name.change != NameChange::only_a)
      places.back().b = spread_of(plan_b.groups(name.name), machine);
  }
  return places;
}

// Adds the number of groups inside one unit of each level.
void add_places(const PlanDiff& difference, const std::vector<PlacesInBoth>& places,
                const Machine& machine, Table& table) {
  for (std::size_t l = 0; l < machine.levels().size(); ++l)
    for (const char* side : {"A", "B"})
      table.columns.push_back(
          {fmt::format("in one {}, {}", machine.levels()[l].name, side), Table::Align::right});
  std::size_t row = 0;
  for (std::size_t n = 0; n < difference.names.size(); ++n) {
    if (difference.names[n].change == NameChange::same) continue;
    for (std::size_t l = 0; l < machine.levels().size(); ++l)
      for (const auto* side : {&places[n].a, &places[n].b})
        table.rows[row].push_back(side->empty() ? "-" : fmt::format("{}", (*side)[l].inside));
    ++row;
  }
}

Value diff_fields(const PlanDiff& difference, const std::string& a, const std::string& b,
                  const std::vector<PlacesInBoth>& places, const Machine* machine) {
  Value fields{{"a", Value{{"mesh", a}, {"world_size", difference.world_a}}},
               {"b", Value{{"mesh", b}, {"world_size", difference.world_b}}},
               {"equal", difference.is_empty()},
               {"changed_ranks", difference.changed_ranks},
               {"names", Value::List{}}};
  if (machine != nullptr) fields["machine"] = machine->describe();
  for (std::size_t n = 0; n < difference.names.size(); ++n) {
    const NameDiff& name = difference.names[n];
    Value entry{{"name", name.name}, {"change", key(name.change)}};
    if (name.change != NameChange::only_b) entry["groups_a"] = name.groups_a;
    if (name.change != NameChange::only_a) entry["groups_b"] = name.groups_b;
    if (name.change != NameChange::only_a && name.change != NameChange::only_b) {
      entry["surviving"] = name.surviving;
      entry["changed_ranks"] = name.changed_ranks;
    }
    for (const std::string& found : name.found_as) entry["found_as"].push_back(found);
    if (machine != nullptr && !places[n].a.empty())
      entry["place_a"] = detail::spread_json(*machine, places[n].a, name.groups_a);
    if (machine != nullptr && !places[n].b.empty())
      entry["place_b"] = detail::spread_json(*machine, places[n].b, name.groups_b);
    fields["names"].push_back(std::move(entry));
  }
  return fields;
}

// Without a machine, the boxes are the coordinates of A.
Picture picture_of(const PlanDiff& difference, const MeshPlan& plan_a, const MeshPlan& plan_b,
                   const std::string& a, const std::string& b, const Machine* machine) {
  Picture picture{.title = fmt::format("A {} and B {}", a, b)};
  if (machine != nullptr) picture.machine = *machine;
  for (const NameDiff& name : difference.names)
    picture.notes.push_back(fmt::format("{}: {}{}", name.name, sentence(name.change),
                                        name.changed_ranks && *name.changed_ranks > 0
                                            ? fmt::format(", {} ranks change", *name.changed_ranks)
                                            : ""));
  for (const MeshPlan* plan : {&plan_a, &plan_b}) picture.states.push_back(detail::state_of(*plan));
  picture.states[0].name = "A";
  picture.states[1].name = "B";
  return picture;
}

}  // namespace

Document diff(const PlanDiff& difference, const MeshPlan& plan_a, const MeshPlan& plan_b,
              const std::string& a, const std::string& b, const Machine* machine) {
  std::vector<PlacesInBoth> places;
  if (machine != nullptr) places = places_of(difference, plan_a, plan_b, *machine);
  Document document{.schema = "rankmesh.diff/1",
                    .fields = diff_fields(difference, a, b, places, machine),
                    .table = names_table(difference),
                    .picture = picture_of(difference, plan_a, plan_b, a, b, machine)};
  if (machine != nullptr) add_places(difference, places, *machine, document.table);
  if (difference.is_empty()) return document;
  document.add(fmt::format(
      "A  {}   {} ranks\nB  {}   {} ranks\n{}\n", a, difference.world_a, b, difference.world_b,
      machine == nullptr ? "" : fmt::format("machine  {}\n", machine->describe())));
  std::vector<std::string> same;
  for (const NameDiff& name : difference.names)
    if (name.change == NameChange::same) same.push_back(name.name);
  if (same.size() < difference.names.size()) {
    document.text.emplace_back(TableHere{});
    document.add("\n");
  }
  document.add(same.empty() ? "  no name is the same in both\n"
                            : fmt::format("  the same in both: {}\n", fmt::join(same, ", ")));
  const std::int64_t world = std::max(difference.world_a, difference.world_b);
  document.add(difference.changed_ranks
                   ? fmt::format("  {} of {} ranks change groups of a name that both have\n",
                                 *difference.changed_ranks, world)
                   : "  the world is too large to count the ranks that change groups\n");
  return document;
}

}  // namespace rankmesh::report
