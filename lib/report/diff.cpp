// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/parts.hpp"
#include "detail/picture.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

struct Words {
  std::string_view key, sentence;
};

Words words_of(NameChange change) {
  switch (change) {
    case NameChange::same:
      return {"same", "same"};
    case NameChange::listing:
      return {"listing", "listed in another order"};
    case NameChange::order:
      return {"order", "ranks in another order"};
    case NameChange::groups:
      return {"groups", "other groups"};
    case NameChange::only_a:
      return {"only_a", "only in A"};
    case NameChange::only_b:
      return {"only_b", "only in B"};
  }
  return {"?", "?"};
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
  Json entry{{"name", name.name}, {"change", words_of(name.change).key}};
  std::vector<Cell> row{name.name, words_of(name.change).sentence};
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
  document.add(same.empty() ? "  no name is the same in both\n"
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
    picture.notes.push_back(fmt::format("{}: {}{}", name.name, words_of(name.change).sentence,
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
  using enum Table::Align;
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
