// SPDX-License-Identifier: BSD-3-Clause
// The rules for the nodes of a machine, and for the order in which a mesh uses them.
#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/findings.hpp"

namespace rankmesh::detail {

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
  std::int64_t changes = 1;
  for (std::size_t s = 1; s < nodes.units.size(); ++s)
    changes += nodes.units[s] != nodes.units[s - 1];
  if (changes > machine.unit_count(node))
    add_finding(
        findings, "scattered-ranks",
        {.what = fmt::format("the ranks of {} are not consecutive", machine.unit_name(node, 0)),
         .why = "the mesh assumes that each node hosts consecutive ranks",
         .fix = "let the launcher fill one node after the other (Open MPI: --map-by slot, Slurm: "
                "--distribution=block)"});
}

// A mesh that permutes its ranks should not visit a node several times.
void check_order(const MeshPlan& plan, const Machine& machine, Findings& findings) {
  const std::size_t node = machine.node_level();
  for (const Layout& view : plan.views()) {
    if (!view.ranks().table()) continue;
    std::vector<std::int64_t> entered;
    std::int64_t last = -1;
    view.ranks().for_each([&](Rank rank) {
      const std::int64_t unit = machine.unit(node, rank.value());
      if (unit != last) entered.push_back(unit);
      last = unit;
    });
    const std::size_t visits = entered.size();
    std::ranges::sort(entered);
    const auto nodes =
        static_cast<std::size_t>(std::ranges::unique(entered).begin() - entered.begin());
    if (visits == nodes) continue;
    add_finding(findings, "order-not-launchers",
                {.what = fmt::format("the mesh lists its ranks in an order that enters {} {}",
                                     count_text(nodes, "node"), count_text(visits, "time")),
                 .why = "ranks that are neighbours in the mesh may be on different nodes",
                 .fix = "leave out `rank_order`, or let `meshinfo emit mesh-order` write it"});
    return;  // the other views have the same order
  }
}

}  // namespace rankmesh::detail
