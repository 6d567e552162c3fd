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

// docs/placement.md says what each rule looks for.
constexpr std::array<PlacementRule, 11> rules{{{"leaves-domain", Severity::warning},
                                               {"larger-than-domain", Severity::warning},
                                               {"shared-fault-domain", Severity::note},
                                               {"pipeline-detour", Severity::warning},
                                               {"ragged-nodes", Severity::note},
                                               {"nccl-uneven-nodes", Severity::error},
                                               {"shared-device", Severity::error},
                                               {"scattered-ranks", Severity::note},
                                               {"order-not-launchers", Severity::note},
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

}  // namespace

void detail::add_finding(Findings& findings, std::string_view id, PlacementFinding finding) {
  const auto* rule = std::ranges::find(rules, id, &PlacementRule::id);
  finding.rule = id;
  finding.severity = rule->severity;
  findings.push_back(std::move(finding));
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
  std::ranges::stable_sort(findings, {}, &PlacementFinding::severity);
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
