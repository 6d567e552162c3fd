// SPDX-License-Identifier: BSD-3-Clause
// A mesh on a machine: the reports of check, estimate, plan and shrink.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/picture.hpp"
#include "place/spread.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

std::string note_of(const PlacementFinding& found) {
  return fmt::format("{}: {}{} [{}]", to_string(found.severity), found.what,
                     found.groups.empty() ? "" : fmt::format(" ({})", found.groups), found.rule);
}

}  // namespace

Document check(const MeshPlan& plan, const Machine& machine,
               const std::vector<PlacementFinding>& findings,
               const std::vector<std::string>& silenced) {
  Document document{.schema = "rankmesh.check/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"machine", machine.describe()}}};
  document.add_fields({"mesh", "machine"});
  document.add("\n");
  document.table.add_columns({"severity", "rule", "name", "groups", "what", "why", "fix"});
  std::vector<std::string> notes;
  for (const PlacementFinding& found : findings) {
    document.table.rows.push_back({to_string(found.severity), found.rule, found.name, found.groups,
                                   found.what, found.why, found.fix});
    document.add_bold(fmt::format("{}: {}", to_string(found.severity), found.what));
    document.add(fmt::format(" [{}]\n", found.rule));
    if (!found.groups.empty()) document.add(fmt::format("  groups: {}\n", found.groups));
    document.add(fmt::format("  why: {}\n  fix: {}\n", found.why, found.fix));
    notes.push_back(note_of(found));
  }
  document.fields["findings"] =
      document.table.objects({"rule", "severity", "name", "groups", "what", "why", "fix"});
  document.fields["silenced"] = silenced;
  document.add(findings.empty() ? "nothing was found\n"
                                : fmt::format("\n{}\n", count_text(findings.size(), "finding")));
  if (!silenced.empty())
    document.add(
        fmt::format("the mesh file silences these rules: {}\n", fmt::join(silenced, ", ")));
  document.picture = detail::picture_of(plan, &machine, std::move(notes));
  return document;
}

namespace {

// The bytes of all families together share the network of a level.
void add_bounds(const MeshPlan& plan, const Machine& machine, std::span<const FamilyVolume> volumes,
                Document& document) {
  std::vector<FamilyTraffic> traffic;
  for (const FamilyVolume& volume : volumes) traffic.push_back(volume.traffic);
  const auto bytes = bytes_per_level(plan, machine, traffic);
  const auto seconds = least_seconds_per_level(machine, bytes);
  for (std::size_t l = 0; l < seconds.size(); ++l) {
    if (!seconds[l]) continue;
    const std::string& level = machine.levels()[l].name;
    document.fields["least_seconds"][level] = *seconds[l];
    document.add(fmt::format(
        "  between {}: at least {:.3g} ms, a lower bound: all {} send {} bytes together "
        "and nothing waits\n",
        plural(level), 1e3 * *seconds[l], count_text(machine.slot_count(), "rank"), bytes[l]));
  }
}

void add_volume(const MeshPlan& plan, const FamilyVolume& volume, const Machine* machine,
                Document& document) {
  const FamilyTraffic& t = volume.traffic;
  std::vector<Cell> row{t.name, to_string(t.pattern), t.bytes};
  Json& entry = document.fields["names"][t.name];
  entry = {{"pattern", to_string(t.pattern)},
           {"bytes_per_rank", t.bytes},
           {"formula", volume.formula},
           {"source", volume.source}};
  if (machine != nullptr) {
    const auto bytes = bytes_per_level(plan, *machine, {&t, 1});
    for (std::size_t l = 0; l < bytes.size(); ++l) {
      row.emplace_back(bytes[l]);
      entry["between"][machine->levels()[l].name] = bytes[l];
    }
  }
  row.insert(row.end(), {volume.formula, volume.source});
  document.table.rows.push_back(std::move(row));
}

}  // namespace

Document estimate(const MeshPlan& plan, const ModelFigures& model,
                  std::span<const FamilyVolume> volumes, const Machine* machine) {
  Document document{.schema = "rankmesh.estimate/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"model", model.name},
                               {"names", Json::object()}}};
  document.table.add_columns({"name", "pattern"});
  document.table.add_columns({"bytes per rank"}, right);
  if (machine != nullptr) {
    document.fields["machine"] = machine->describe();
    for (const MachineLevel& level : machine->levels())
      document.table.add_columns({"between " + plural(level.name)}, right);
  }
  document.table.add_columns({"formula"});
  document.table.columns.push_back({"source", left, Table::Forms::csv_only});
  for (const FamilyVolume& volume : volumes) add_volume(plan, volume, machine, document);
  document.add_fields({"mesh", "model", "machine"});
  document.add("\n");
  document.text.emplace_back(TableHere{});
  document.add(fmt::format(
      "\n  the volumes are bytes of one step of {} of {} x {} tokens, not times\n",
      model.microbatches == 1 ? "1 microbatch" : fmt::format("{} microbatches", model.microbatches),
      model.batch, model.sequence));
  if (machine != nullptr) add_bounds(plan, *machine, volumes, document);
  for (const FamilyVolume& volume : volumes)
    document.add(fmt::format("  {}: {}\n", volume.traffic.name, volume.source));
  return document;
}

namespace {

std::string slots_text(const std::vector<std::int64_t>& slots) {
  std::vector<Rank> ranks(slots.begin(), slots.end());
  return RankSet::of(ranks).to_string();
}

// Adds a row, and an object of JSON.
void add_arrangement(const Machine& machine, const std::string& which, const std::string& how,
                     const std::vector<std::int64_t>& bytes, Document& document) {
  std::vector<Cell>& row = document.table.rows.emplace_back();
  row.emplace_back(which);
  Json& field = document.fields[which] = {{"how", how}};
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    row.emplace_back(bytes[l]);
    field["bytes"][machine.levels()[l].name] = bytes[l];
  }
  row.emplace_back(how);
}

// The families whose groups the best arrangement moves into units, or out of them.
std::string changes_text(const MeshPlan& plan, const Machine& machine,
                         std::span<const FamilyTraffic> traffic, const Arrangements& found) {
  std::string text;
  for (const FamilyTraffic& t : traffic) {
    const GroupFamily& family = plan.groups(t.name);
    const auto before = spread_of(family, machine);
    const auto after = spread_of(family, machine, found.best.slots);
    for (std::size_t l = 0; l < before.size(); ++l)
      if (before[l].inside != after[l].inside || before[l].most_units != after[l].most_units)
        text += fmt::format(
            "  {}: {} of {} groups lie in one {}, before {}; a group touches up to {}, before {}\n",
            t.name, after[l].inside, family.group_count(), machine.levels()[l].name,
            before[l].inside, after[l].most_units, before[l].most_units);
  }
  return text;
}

// Before and after. The numbers are the bytes of each level, outermost first.
Picture picture_of(const MeshPlan& mesh, const Machine& machine, std::string_view unit,
                   const Arrangements& found) {
  std::vector<std::string> levels;
  for (const MachineLevel& level : machine.levels()) levels.push_back(plural(level.name));
  Picture picture = detail::picture_of(
      mesh, &machine,
      {fmt::format("{} that leave {}: today {}, best {}",
                   unit == "bytes" ? "bytes" : "units of traffic", fmt::join(levels, ", "),
                   fmt::join(found.today.bytes, ", "), fmt::join(found.best.bytes, ", "))});
  picture.states.push_back(picture.states.front());
  picture.states[0].name = "today";
  picture.states[1].name = "best";
  picture.states[1].slots = found.best.slots;
  return picture;
}

}  // namespace

Document plan(const MeshPlan& mesh, const Machine& machine, std::span<const FamilyTraffic> traffic,
              std::string_view unit, const Arrangements& found) {
  Document document{.schema = "rankmesh.plan/1",
                    .fields = {{"mesh", views_text(mesh)},
                               {"world_size", mesh.world_size()},
                               {"machine", machine.describe()},
                               {"unit", unit},
                               {"is_exact", found.is_exact}}};
  std::vector<std::string> sent;
  for (const FamilyTraffic& t : traffic) {
    document.fields["traffic"][t.name] = {{"bytes", t.bytes}, {"pattern", to_string(t.pattern)}};
    sent.push_back(fmt::format("{} {} ({})", t.name, t.bytes, to_string(t.pattern)));
  }
  document.table.add_columns({""});
  for (const MachineLevel& level : machine.levels())
    document.table.add_columns({"between " + plural(level.name)}, right);
  document.table.add_columns({"arrangement"});
  add_arrangement(machine, "best", found.best.how, found.best.bytes, document);
  if (!found.runner_up.slots.empty())
    add_arrangement(machine, "runner_up", found.runner_up.how, found.runner_up.bytes, document);
  add_arrangement(machine, "today", "rank r in slot r", found.today.bytes, document);
  add_arrangement(machine, "bound", "no arrangement sends less", found.bound, document);
  document.fields["best"]["slots"] = slots_text(found.best.slots);
  document.add_fields({"mesh", "machine"});
  document.add_line("traffic", fmt::format("what a rank sends in one step, {}: {}\n",
                                           unit == "bytes" ? "in bytes" : "as relative numbers",
                                           fmt::join(sent, ", ")));
  document.text.emplace_back(TableHere{});
  if (found.best.bytes == found.today.bytes) {
    document.add("\nno better arrangement than today's was found\n");
  } else {
    document.add(fmt::format("\n{}", changes_text(mesh, machine, traffic, found)));
    document.add("  meshinfo emit writes the files that make a launcher use it\n");
  }
  if (found.is_exact) document.add("  it reaches the bound, so no arrangement is better\n");
  document.picture = picture_of(mesh, machine, unit, found);
  return document;
}

namespace {

constexpr std::size_t most_loss_lines = 16;

RankSet rank_set_of(const std::vector<std::int64_t>& ranks) {
  const std::vector<Rank> of_type(ranks.begin(), ranks.end());
  return RankSet::of(of_type);
}

// Runs of consecutive old ranks that become consecutive new ranks.
std::string moves_text(const std::vector<std::int64_t>& new_rank) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t r = 0; r < new_rank.size();) {
    std::size_t end = r + 1;
    while (end < new_rank.size() && new_rank[r] >= 0 &&
           new_rank[end] == new_rank[r] + static_cast<std::int64_t>(end - r))
      ++end;
    if (new_rank[r] >= 0) {
      if (++runs > most_loss_lines) return text + "    ...\n";
      text += end - r == 1 ? fmt::format("    {} becomes {}\n", r, new_rank[r])
                           : fmt::format("    {}-{} become {}-{}\n", r, end - 1, new_rank[r],
                                         new_rank[end - 1]);
    }
    r = end;
  }
  return text;
}

void add_losses(const Shrunk& after, Document& document) {
  for (const LostRank& lost : after.lost) {
    document.fields["lost"].push_back({{"rank", lost.rank},
                                       {"coordinates", lost.coordinates},
                                       {"part", lost.part},
                                       {"copies_left", lost.copies_left}});
    if (document.fields["lost"].size() > most_loss_lines) continue;
    document.add(fmt::format(
        "  rank {} ({}): {} of {} left\n", lost.rank, lost.coordinates,
        lost.copies_left == 0
            ? "no copy"
            : fmt::format("{} {}", lost.copies_left, lost.copies_left == 1 ? "copy" : "copies"),
        lost.part));
  }
  if (after.lost.size() > most_loss_lines)
    document.add(fmt::format("  ... and {} more\n", after.lost.size() - most_loss_lines));
  document.fields["fatal"] = after.fatal;
  if (!after.fatal.empty()) {
    document.add_bold("fatal");
    document.add(fmt::format(
        "    no copy of {}{} is left; continue from a checkpoint\n", after.fatal.front(),
        after.fatal.size() == 1
            ? ""
            : fmt::format(" and {} more", count_text(after.fatal.size() - 1, "part"))));
  }
}

void add_rank_table(const MeshPlan& plan, const Shrunk& after, Table& table) {
  table.columns = {{"rank", right}, {"was", left}, {"new rank", right}, {"is", left}};
  for (std::size_t r = 0; r < after.new_rank.size(); ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    const std::int64_t place = after.new_rank[r];
    table.rows.push_back({rank, rank < plan.world_size() ? plan.describe(rank) : "spare",
                          place < 0 ? Json() : Json(place),
                          place < 0 || !after.plan ? Json() : Json(after.plan->describe(place))});
  }
}

Picture picture_of_loss(const MeshPlan& plan, const Shrunk& after, const Machine* machine) {
  std::vector<std::int64_t> lost;
  for (const LostRank& one : after.lost) lost.push_back(one.rank);
  Picture picture = detail::picture_of(plan, machine,
                                       {fmt::format("lost: {}", rank_set_of(lost).to_string(200))});
  const bool has_spares = std::ssize(after.new_rank) > plan.world_size();
  if (!after.plan || has_spares) return picture;  // it has no slots for spare ranks
  picture.states.front().name = "before";
  PictureState& state = picture.states.emplace_back(detail::state_of(*after.plan));
  state.name = "after";
  state.slots.resize(static_cast<std::size_t>(state.world_size));
  for (std::size_t r = 0; r < after.new_rank.size(); ++r)
    if (after.new_rank[r] >= 0)
      state.slots[static_cast<std::size_t>(after.new_rank[r])] = static_cast<std::int64_t>(r);
  return picture;
}

}  // namespace

Document shrink(const MeshPlan& plan, ShrinkPolicy policy, const Shrunk& after,
                const Machine* machine) {
  Document document{.schema = "rankmesh.shrink/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"policy", to_string(policy)},
                               {"lost", Json::array()},
                               {"fatal", Json::array()},
                               {"copies_before", after.copies_before},
                               {"copies_after", after.copies_after}}};
  document.add_line("mesh", title_of(plan));
  document.add_bold("lost");
  document.add("\n");
  add_losses(after, document);
  document.add_bold("afterwards");
  document.add(fmt::format(", with the policy {}\n", to_string(policy)));
  if (after.plan) {
    document.fields["after"] = {{"mesh", views_text(*after.plan)},
                                {"world_size", after.plan->world_size()}};
    document.add(fmt::format("  {}, {} of {} copies\n{}", title_of(*after.plan), after.copies_after,
                             after.copies_before, moves_text(after.new_rank)));
  } else {
    document.add(
        fmt::format("  no complete replica remains{}\n",
                    after.fatal.empty() ? "; the policies compact and spare can continue" : ""));
  }
  if (after.plan && !after.idle.empty())
    document.add(fmt::format("  idle: {}\n", rank_set_of(after.idle).to_string(200)));
  document.fields["idle"] = after.idle;
  document.fields["new_rank"] = after.new_rank;
  add_rank_table(plan, after, document.table);
  document.picture = picture_of_loss(plan, after, machine);
  return document;
}

}  // namespace rankmesh::report
