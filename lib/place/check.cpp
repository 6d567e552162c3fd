// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/check.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/findings.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/place/diff.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {
namespace {

constexpr std::array<PlacementRule, 11> rules{{
    {"leaves-domain", Severity::warning,
     "groups of tp or ep leave their NVLink domain or node, although they fit"},
    {"larger-than-domain", Severity::warning,
     "groups of tp or ep have more ranks than an NVLink domain or a node"},
    {"shared-fault-domain", Severity::note, "all replicas of a part of the model are on one node"},
    {"pipeline-detour", Severity::warning,
     "neighbours in a pipeline cross a level more often than needed"},
    {"ragged-nodes", Severity::note, "nodes host different numbers of ranks"},
    {"nccl-uneven-nodes", Severity::error,
     "a group has different numbers of ranks on its nodes, which hangs NCCL 2.31.2"},
    {"shared-device", Severity::error, "two ranks are on one device"},
    {"scattered-ranks", Severity::note, "the ranks of a node are not consecutive"},
    {"order-not-launchers", Severity::note,
     "the mesh orders its ranks differently than the launcher, and returns to nodes that it has "
     "left"},
    {"node-loss-fatal", Severity::warning,
     "a node has the only copies of a part of the model (with --any-node-lost)"},
    {"preset-mismatch", Severity::error,
     "groups differ from those of the mesh that the file names"},
}};

void require_known(std::span<const std::string> silenced) {
  std::vector<std::string> ids;
  for (const PlacementRule& rule : rules) ids.emplace_back(rule.id);
  for (const std::string& id : silenced)
    if (std::ranges::find(ids, id) == ids.end())
      throw SpecError{fmt::format("there is no rule '{:.40}' to silence", id),
                      detail::suggest(id, ids, "the rules are")};
}

}  // namespace

void detail::add_finding(Findings& findings, std::string_view id, PlacementFinding finding) {
  const auto* rule = std::ranges::find(rules, id, &PlacementRule::id);
  finding.rule = id;
  finding.severity = rule->severity;
  findings.push_back(std::move(finding));
}

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "?";
}

std::span<const PlacementRule> placement_rules() { return rules; }

std::vector<PlacementFinding> check_placement(const MeshPlan& plan, const Machine& machine,
                                              std::span<const std::string> silenced) {
  require_known(silenced);
  detail::Findings findings;
  detail::check_nodes(machine, findings);
  detail::check_order(plan, machine, findings);
  for (const GroupFamily& family : plan.families()) detail::check_family(family, machine, findings);
  std::erase_if(findings, [&](const PlacementFinding& finding) {
    return std::ranges::find(silenced, finding.rule) != silenced.end();
  });
  std::ranges::stable_sort(findings, std::ranges::greater{}, &PlacementFinding::severity);
  return findings;
}

std::vector<PlacementFinding> check_claim(const MeshPlan& plan, std::string_view same_as) {
  detail::Findings findings;
  const MeshPlan claimed = MeshSpec::parse_string(same_as).plan(plan.world_size());
  for (const NameDiff& name : diff(plan, claimed).names) {
    if (name.change != NameChange::groups && name.change != NameChange::order) continue;
    detail::add_finding(
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

}  // namespace rankmesh
