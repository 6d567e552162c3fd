// SPDX-License-Identifier: BSD-3-Clause
#include "group/conformance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "support/mpi_world.hpp"

namespace rankmesh_test {

using namespace rankmesh;

namespace {

conformance::Table in_turn(const Conformance& table) {
  conformance::Table part = table;
  part.turn += size();
  return part;
}

void judge(const conformance::Report& report) {
  for (const std::string& failure : report.failures) FAIL_CHECK(failure);
  CHECK(!report.operations.empty());
  for (const auto& [operation, tally] : report.operations) CHECK(tally.wrong == 0);
}

}  // namespace

Conformance::Conformance() { share = size() <= 4 ? 3 : 24; }

Order by_nodes(const Mesh& mesh, const GroupCoordinator& group) {
  std::vector<std::int32_t> nodes;
  Order order;
  for (std::int64_t k = 0; k < group.size(); ++k) {
    const std::int32_t node = mesh.placement().node(group.ranks().at(k));
    const auto at = static_cast<std::size_t>(std::ranges::find(nodes, node) - nodes.begin());
    if (at == nodes.size()) {
      nodes.push_back(node);
      order.emplace_back();
    }
    order[at].push_back(k);
  }
  return order;
}

Order in_shared_memory(const Mesh& mesh, const GroupCoordinator& group) {
  const Order nodes = by_nodes(mesh, group);
  return nodes.size() == 1 ? nodes : Order{};
}

void check_conformance(const Carrier& carrier, const Conformance& table) {
  judge(conformance::check(carrier, in_turn(table)));
}

void check_conformance(GroupCoordinator& group, const Conformance& table) {
  CAPTURE(group.name());
  judge(conformance::check(group, in_turn(table)));
}

}  // namespace rankmesh_test
