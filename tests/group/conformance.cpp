// SPDX-License-Identifier: BSD-3-Clause
#include "group/conformance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/group/detail/group_access.hpp"
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

// Makes a call by the function that a program uses.
template <class T>
void run_typed(GroupCoordinator& group, const Call& c) {
  const std::span<const T> in{reinterpret_cast<const T*>(c.in.data),
                              static_cast<std::size_t>(c.in.count)};
  const std::span<T> out{reinterpret_cast<T*>(c.out.data), static_cast<std::size_t>(c.out.count)};
  const bool in_place = c.in.data == c.out.data;
  switch (c.operation) {
    case Operation::broadcast:
      return group.broadcast(out, c.root);
    case Operation::all_reduce:
      return in_place ? group.all_reduce(out, c.reduction) : group.all_reduce(in, out, c.reduction);
    case Operation::reduce:
      return in_place ? group.reduce(out, c.root, c.reduction)
                      : group.reduce(in, out, c.root, c.reduction);
    case Operation::all_gather:
      return c.has_blocks() ? group.all_gather_v(in, out, *c.out_blocks)
                            : group.all_gather(in, out);
    case Operation::gather:
      return c.has_blocks() ? group.gather_v(in, out, *c.out_blocks, c.root)
                            : group.gather(in, out, c.root);
    case Operation::reduce_scatter:
      return c.has_blocks() ? group.reduce_scatter_v(in, out, *c.in_blocks, c.reduction)
                            : group.reduce_scatter(in, out, c.reduction);
    case Operation::scatter:
      return c.has_blocks() ? group.scatter_v(in, out, *c.in_blocks, c.root)
                            : group.scatter(in, out, c.root);
    case Operation::all_to_all:
      return c.has_blocks() ? group.all_to_all_v(in, out, *c.in_blocks, *c.out_blocks)
                            : group.all_to_all(in, out);
    case Operation::send_recv:
      return group.send_recv(in, out, next, prev);
    case Operation::barrier:
      return group.barrier();
    default:  // tests of their own use their functions
      return detail::GroupAccess::run(group, c);
  }
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
  Carrier carrier{.members = group.size(), .self = group.rank_in_group().value()};
  carrier.run = [&](const Call& call) {
    visit(call.out.type, [&]<class T>(std::type_identity<T>) { run_typed<T>(group, call); });
  };
  carrier.start = [&](const Call& call) -> std::function<void()> {
    auto work = std::make_shared<Work>(detail::GroupAccess::start(group, call));
    return [work] { work->wait(); };
  };
  judge(conformance::check(carrier, in_turn(table)));
}

}  // namespace rankmesh_test
