// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/diff.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/picture.hpp"

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

Value diff_fields(const PlanDiff& difference, const std::string& a, const std::string& b) {
  Value fields{{"a", Value{{"mesh", a}, {"world_size", difference.world_a}}},
               {"b", Value{{"mesh", b}, {"world_size", difference.world_b}}},
               {"equal", difference.is_empty()},
               {"changed_ranks", difference.changed_ranks},
               {"names", Value::List{}}};
  for (const NameDiff& name : difference.names) {
    Value entry{{"name", name.name}, {"change", key(name.change)}};
    if (name.change != NameChange::only_b) entry["groups_a"] = name.groups_a;
    if (name.change != NameChange::only_a) entry["groups_b"] = name.groups_b;
    if (name.change != NameChange::only_a && name.change != NameChange::only_b) {
      entry["surviving"] = name.surviving;
      entry["changed_ranks"] = name.changed_ranks;
    }
    for (const std::string& found : name.found_as) entry["found_as"].push_back(found);
    fields["names"].push_back(std::move(entry));
  }
  return fields;
}

// The boxes are the coordinates of A.
Picture picture_of(const PlanDiff& difference, const MeshPlan& plan_a, const MeshPlan& plan_b,
                   const std::string& a, const std::string& b) {
  Picture picture{.title = fmt::format("A {} and B {}", a, b)};
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
              const std::string& a, const std::string& b) {
  Document document{.schema = "rankmesh.diff/1",
                    .fields = diff_fields(difference, a, b),
                    .table = names_table(difference),
                    .picture = picture_of(difference, plan_a, plan_b, a, b)};
  if (difference.is_empty()) return document;
  document.add(fmt::format("A  {}   {} ranks\nB  {}   {} ranks\n\n", a, difference.world_a, b,
                           difference.world_b));
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
