// SPDX-License-Identifier: BSD-3-Clause
// The rule `node-loss-fatal`.
#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/findings.hpp"
#include "layout/detail/parts.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {

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
                                   detail::count_text(machine.slot_count(), "slot")),
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
  detail::Findings findings;
  if (fatal == 0) return findings;
  std::ranges::sort(nodes);
  const auto distinct = std::ranges::unique(nodes).begin() - nodes.begin();
  detail::add_finding(
      findings, "node-loss-fatal",
      {.what = fmt::format("the loss of one node can be fatal: {} of {} have the only copies of {} "
                           "of the model, for example {} those of {}",
                           distinct, detail::count_text(machine.unit_count(level), "node"),
                           detail::count_text(fatal, "part"), machine.unit_name(level, home[first]),
                           detail::part_text(plan, example[first])),
       .why = "no other node can provide these parameters, so the run continues from a checkpoint",
       .fix = "add replicas (dp), and spread them over nodes with `meshinfo plan`"});
  return findings;
}

}  // namespace rankmesh
