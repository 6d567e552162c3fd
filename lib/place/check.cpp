// SPDX-License-Identifier: BSD-3-Clause
#include "place/check.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/distinct_groups.hpp"
#include "layout/detail/parts.hpp"
#include "place/diff.hpp"
#include "place/spread.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/role.hpp"
#include "rankmesh/place/arrange.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {
namespace {

using detail::count_text;
using detail::visit_distinct_groups;
using Findings = std::vector<PlacementFinding>;

struct PlacementRule {
  std::string_view id;
  Severity severity;  // of its findings
};

// docs/placement.md says what each rule looks for.
constexpr std::array<PlacementRule, 12> rules{{{"leaves-domain", Severity::warning},
                                               {"larger-than-domain", Severity::warning},
                                               {"shared-fault-domain", Severity::note},
                                               {"pipeline-detour", Severity::warning},
                                               {"ragged-nodes", Severity::note},
                                               {"nccl-uneven-nodes", Severity::error},
                                               {"shared-device", Severity::error},
                                               {"scattered-ranks", Severity::note},
                                               {"order-not-launchers", Severity::note},
                                               {"plan-sends-less", Severity::note},
                                               {"node-loss-fatal", Severity::warning},
                                               {"preset-mismatch", Severity::error}}};

void require_known(std::span<const std::string> silenced) {
  std::vector<std::string> ids;
  for (const PlacementRule& rule : rules) ids.emplace_back(rule.id);
  for (const std::string& id : silenced)
    if (std::ranges::find(ids, id) == ids.end())
      throw SpecError{fmt::format("there is no rule '{:.40}' to silence", id),
                      detail::suggest(id, ids, "the rules are")};
}

// Adds a finding with the id and the severity of a rule.
void add_finding(Findings& findings, std::string_view id, PlacementFinding finding) {
  const auto* rule = std::ranges::find(rules, id, &PlacementRule::id);
  finding.rule = id;
  finding.severity = rule->severity;
  findings.push_back(std::move(finding));
}

// How ranks, in their order, visit the units of a level.
struct Visits {
  std::int64_t entries = 0;                  // a unit that is left and entered again counts twice
  std::int64_t units = 0;                    // different ones
  std::int64_t least = INT64_MAX, most = 0;  // ranks in a unit
};

Visits visits_of(const RankSet& ranks, const Machine& machine, std::size_t level) {
  Visits visits;
  std::vector<std::int64_t> units;
  ranks.for_each([&](Rank rank) {
    const std::int64_t unit = machine.unit(level, rank.value());
    if (units.empty() || unit != units.back()) ++visits.entries;
    units.push_back(unit);
  });
  std::ranges::sort(units);
  for (auto at = units.begin(); at != units.end(); ++visits.units) {
    const auto end = std::upper_bound(at, units.end(), *at);
    visits.least = std::min<std::int64_t>(visits.least, end - at);
    visits.most = std::max<std::int64_t>(visits.most, end - at);
    at = end;
  }
  return visits;
}

// "3 of 8: numbers 0-2"
std::string groups_text(const LevelSpread& spread, std::int64_t groups) {
  return fmt::format("{} of {}: numbers {}", spread.split, groups, split_numbers(spread));
}

bool is_bound_to_domain(FamilyRole role) {
  return role == FamilyRole::tensor || role == FamilyRole::expert;
}

void check_domain(const GroupFamily& family, const Machine& machine,
                  const std::vector<LevelSpread>& spreads, Findings& findings) {
  const std::size_t level = machine.fast_level();
  if (!is_bound_to_domain(role_of(family.name())) || spreads[level].split == 0) return;
  const std::string& unit = machine.levels()[level].name;
  const std::string groups = groups_text(spreads[level], family.group_count());
  const std::string why = fmt::format(
      "these groups communicate in every layer, and the network between {} is slower than the "
      "inside of a {}",
      plural(unit), unit);
  if (family.group_size() > machine.largest(level))
    add_finding(
        findings, "larger-than-domain",
        {.name = family.name(),
         .groups = groups,
         .what = fmt::format("the groups of '{}' have {} ranks, but a {} has {}", family.name(),
                             family.group_size(), unit, machine.largest(level)),
         .why = why,
         .fix = fmt::format("use {} = {} or less, or larger {}", family.name(),
                            machine.largest(level), plural(unit))});
  else
    add_finding(findings, "leaves-domain",
                {.name = family.name(),
                 .groups = groups,
                 .what = fmt::format("groups of '{}' are split over up to {} {}", family.name(),
                                     spreads[level].most_units, plural(unit)),
                 .why = why,
                 .fix = fmt::format("make '{}' vary faster in the mesh, or ask `meshinfo plan`",
                                    family.name())});
}

void check_fault_domain(const GroupFamily& family, const Machine& machine,
                        const std::vector<LevelSpread>& spreads, Findings& findings) {
  const std::size_t node = machine.node_level();
  if (role_of(family.name()) != FamilyRole::data || family.group_size() < 2 ||
      machine.unit_count(node) < 2 || spreads[node].inside == 0)
    return;
  add_finding(
      findings, "shared-fault-domain",
      {.name = family.name(),
       .groups = fmt::format("{} of {}", spreads[node].inside, family.group_count()),
       .what = fmt::format("all replicas of {} of '{}' are on one node",
                           count_text(spreads[node].inside, "group"), family.name()),
       .why = "if this node fails, no copy of its parameters is left, and the run continues from a "
              "checkpoint",
       .fix = "spread the replicas over several nodes, or accept the risk and silence the rule"});
}

void check_pipeline(const GroupFamily& family, const Machine& machine,
                    const std::vector<LevelSpread>& spreads, Findings& findings) {
  if (role_of(family.name()) != FamilyRole::pipeline || family.group_size() < 3) return;
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    if (spreads[l].split == 0) continue;
    std::int64_t first = -1;
    std::int64_t worst = 0;
    visit_distinct_groups(family, machine, l, [&](std::int64_t g, std::int64_t) {
      const Visits visits = visits_of(family.group(g), machine, l);
      if (visits.entries <= visits.units) return;
      if (first < 0 || g < first) first = g;
      worst = std::max(worst, visits.entries - visits.units);
    });
    if (first < 0) continue;
    const std::string& unit = machine.levels()[l].name;
    add_finding(
        findings, "pipeline-detour",
        {.name = family.name(),
         .groups = fmt::format("the first is {}", first),
         .what = fmt::format("the stages of '{}' return to a {} that they have left, {} too often",
                             family.name(), unit, count_text(worst, "time")),
         .why =
             fmt::format("each return sends activations over the network between {}", plural(unit)),
         .fix = "put consecutive stages side by side, or ask `meshinfo plan`"});
    return;  // the outermost level says it
  }
}

void check_uneven(const GroupFamily& family, const Machine& machine,
                  const std::vector<LevelSpread>& spreads, Findings& findings) {
  const std::size_t node = machine.node_level();
  if (spreads[node].split == 0) return;
  std::int64_t first = -1;
  Visits example;
  visit_distinct_groups(family, machine, node, [&](std::int64_t g, std::int64_t) {
    const Visits visits = visits_of(family.group(g), machine, node);
    if (visits.least == visits.most || (first >= 0 && g > first)) return;
    first = g;
    example = visits;
  });
  if (first < 0) return;
  add_finding(
      findings, "nccl-uneven-nodes",
      {.name = family.name(),
       .groups = fmt::format("the first is {}", first),
       .what = fmt::format("a group of '{}' has {} ranks on one node and {} on another",
                           family.name(), example.least, example.most),
       .why = "NCCL 2.31.2 hangs with 7 and 8 ranks per node (NVIDIA/nccl issue 2385), and uneven "
              "nodes make its rings slower",
       .fix = "place the same number of ranks of a group on each node, or use another version of "
              "NCCL"});
}

// The rules for one family: where its groups lie, and whether its replicas, its stages and its
// shares of the nodes are placed well.
void check_family(const GroupFamily& family, const Machine& machine, Findings& findings) {
  const std::vector<LevelSpread> spreads = spread_of(family, machine);
  check_domain(family, machine, spreads, findings);
  check_fault_domain(family, machine, spreads, findings);
  check_pipeline(family, machine, spreads, findings);
  check_uneven(family, machine, spreads, findings);
}

// The rules for the nodes of the machine.
void check_nodes(const Machine& machine, Findings& findings) {
  const std::size_t node = machine.node_level();
  if (machine.smallest(node) != machine.largest(node))
    add_finding(findings, "ragged-nodes",
                {.what = fmt::format("the nodes host {} to {} ranks", machine.smallest(node),
                                     machine.largest(node)),
                 .why = "groups of the same size cannot all be placed on the nodes in the same way",
                 .fix = "start the same number of ranks on each node"});
  if (machine.device_count() > 0 && machine.largest(node) > machine.device_count())
    add_finding(findings, "shared-device",
                {.what = fmt::format("a node hosts {} ranks, but has {}", machine.largest(node),
                                     count_text(machine.device_count(), "GPU")),
                 .why = "NCCL refuses two ranks on one GPU, and they share its memory",
                 .fix = "start fewer ranks on a node"});
  const MachineLevel& nodes = machine.levels()[node];
  if (nodes.size > 0) return;
  std::vector<bool> is_entered(static_cast<std::size_t>(machine.unit_count(node)));
  std::int64_t scattered = -1;  // the first node that is entered again
  for (std::size_t s = 0; s < nodes.units.size() && scattered < 0; ++s) {
    if (s > 0 && nodes.units[s] == nodes.units[s - 1]) continue;
    const std::int64_t unit = nodes.units[s];
    if (is_entered[static_cast<std::size_t>(unit)]) scattered = unit;
    is_entered[static_cast<std::size_t>(unit)] = true;
  }
  if (scattered >= 0)
    add_finding(
        findings, "scattered-ranks",
        {.what =
             fmt::format("the ranks of {} are not consecutive", machine.unit_name(node, scattered)),
         .why = "the mesh assumes that each node hosts consecutive ranks",
         .fix = "let the launcher fill one node after the other (Open MPI: --map-by slot, Slurm: "
                "--distribution=block); if the ranks follow a file of `meshinfo emit`, keep it and "
                "silence this rule"});
}

// A mesh that permutes its ranks should not visit a node several times.
void check_order(const MeshPlan& plan, const Machine& machine, Findings& findings) {
  const std::size_t node = machine.node_level();
  for (const Layout& view : plan.views()) {
    if (!view.ranks().table()) continue;
    const Visits visits = visits_of(view.ranks(), machine, node);
    if (visits.entries == visits.units) continue;
    add_finding(
        findings, "order-not-launchers",
        {.what = fmt::format("the mesh lists its ranks in an order that enters {} {}",
                             count_text(visits.units, "node"), count_text(visits.entries, "time")),
         .why = "ranks that are neighbours in the mesh may be on different nodes",
         .fix = "leave out `rank_order`, or let `meshinfo emit mesh-order` write it"});
    return;  // the other views have the same order
  }
}

}  // namespace

std::vector<PlacementFinding> check_placement(const MeshPlan& plan, const Machine& machine,
                                              std::span<const std::string> silenced) {
  require_known(silenced);
  Findings findings;
  check_nodes(machine, findings);
  check_order(plan, machine, findings);
  for (const GroupFamily& family : plan.families()) check_family(family, machine, findings);
  std::erase_if(findings, [&](const PlacementFinding& finding) {
    return std::ranges::find(silenced, finding.rule) != silenced.end();
  });
  std::ranges::stable_sort(findings, {}, &PlacementFinding::severity);
  return findings;
}

std::vector<PlacementFinding> check_alternatives(const MeshPlan& plan, const Machine& machine) {
  constexpr std::int64_t most_ranks = 16'384;  // the orders of more take seconds
  Findings findings;
  if (plan.world_size() > most_ranks) return findings;
  const Arrangements found = arrange(plan, machine, usual_traffic(plan), {.search_budget = 0});
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    const std::int64_t today = found.today.bytes[l], best = found.best.bytes[l];
    if (best > today) return findings;
    if (2 * today < 3 * best || today == best) continue;
    const std::string between = plural(machine.levels()[l].name);
    add_finding(
        findings, "plan-sends-less",
        {.what = best == 0
                     ? fmt::format("another assignment of ranks sends nothing between {}", between)
                     : fmt::format("another assignment of ranks sends {:.1f} times fewer "
                                   "bytes between {}",
                                   static_cast<double>(today) / static_cast<double>(best), between),
         .why = "the usual traffic of these families is assumed, because no model is given",
         .fix = "ask `meshinfo plan` with your model (--model) or volumes (--volume)"});
    return findings;  // the outermost level says it
  }
  return findings;
}

std::vector<PlacementFinding> check_claim(const MeshPlan& plan, std::string_view same_as) {
  Findings findings;
  const MeshPlan claimed = MeshSpec::parse_string(same_as).plan(plan.world_size());
  for (const NameDiff& name : diff(plan, claimed).names) {
    if (name.change != NameChange::groups && name.change != NameChange::order) continue;
    add_finding(
        findings, "preset-mismatch",
        {.name = name.name,
         .groups = name.surviving
                       ? fmt::format("{} of {}", name.groups_a - *name.surviving, name.groups_a)
                       : "",
         .what = fmt::format("the groups of '{}' differ from those of {}", name.name, same_as),
         .why = "a program that shares checkpoints or groups with that system expects its layout",
         .fix = fmt::format("use the mesh {}, or correct `same_as` in the mesh file", same_as)});
  }
  return findings;
}

std::vector<PlacementFinding> check_node_loss(const MeshPlan& plan, const Machine& machine) {
  const detail::Parts parts = detail::parts_of(plan);
  const std::size_t level = machine.node_level();
  constexpr std::int64_t several = -2;
  std::vector<std::int64_t> home(parts.count, -1);  // the node of all copies
  std::vector<std::int64_t> example(parts.count);
  for (std::size_t r = 0; r < parts.part.size(); ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    if (rank >= machine.slot_count())
      throw UsageError{fmt::format("rank {} has no slot: the machine has {}", rank,
                                   count_text(machine.slot_count(), "slot")),
                       "use a machine with a slot for each rank"};
    const std::int64_t node = machine.unit(level, rank);
    std::int64_t& known = home[parts.part[r]];
    if (known == -1) example[parts.part[r]] = rank;
    known = known == -1 || known == node ? node : several;
  }
  std::vector<std::int64_t> nodes;
  std::size_t first = parts.count;
  std::int64_t fatal = 0;
  for (std::size_t p = 0; p < parts.count; ++p) {
    if (home[p] == several) continue;
    ++fatal;
    if (first == parts.count) first = p;
    nodes.push_back(home[p]);
  }
  Findings findings;
  if (fatal == 0) return findings;
  std::ranges::sort(nodes);
  const auto distinct = std::ranges::unique(nodes).begin() - nodes.begin();
  add_finding(
      findings, "node-loss-fatal",
      {.what = fmt::format("the loss of one node can be fatal: {} of {} have the only copies of {} "
                           "of the model, for example {} those of {}",
                           distinct, count_text(machine.unit_count(level), "node"),
                           count_text(fatal, "part"), machine.unit_name(level, home[first]),
                           detail::part_text(plan, example[first])),
       .why = "no other node can provide these parameters, so the run continues from a checkpoint",
       .fix = "add replicas (dp), and spread them over nodes with `meshinfo plan`"});
  return findings;
}

}  // namespace rankmesh
