// SPDX-License-Identifier: BSD-3-Clause
#include "group/conformance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "group/conformance_attempt.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "support/mpi_world.hpp"

namespace rankmesh_test {

using namespace rankmesh;

namespace {

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

// The first members whose inputs are combined.
std::int64_t combined_of(Operation operation, const Carrier& carrier) {
  const OperationFacts& facts = facts_of(operation);
  if (facts.awaited != Awaited::earlier) return carrier.members;
  return facts.excludes_own ? carrier.self : carrier.self + 1;
}

bool is_in_turn(std::size_t place, const Conformance& table) {
  const int share = table.share > 0 ? table.share : size() <= 4 ? 3 : 24;
  return static_cast<int>(place % static_cast<std::size_t>(share)) == (size() + table.turn) % share;
}

}  // namespace

Order in_group_order(std::int64_t members) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(members));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

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
  constexpr std::size_t most_in_flight = 4;
  struct InFlight {
    std::unique_ptr<Attempt> attempt;
    std::function<void()> wait;
  };
  std::map<std::tuple<DataType, ReduceOp, bool, std::int64_t>, Values> values;
  std::deque<InFlight> in_flight;
  std::mt19937 own{static_cast<unsigned>(carrier.self)};  // chooses the call to wait for
  int runs = 0, failures = 0;
  const auto judge = [&](const Attempt& attempt) {
    ++runs;
    const std::string problem = attempt.problem();
    if (!problem.empty() && ++failures <= 5) FAIL_CHECK(attempt.text() << ": " << problem);
  };
  const auto finish_one = [&] {
    const auto at = static_cast<std::ptrdiff_t>(own() % in_flight.size());
    INFO(in_flight[static_cast<std::size_t>(at)].attempt->text());
    in_flight[static_cast<std::size_t>(at)].wait();
    judge(*in_flight[static_cast<std::size_t>(at)].attempt);
    in_flight.erase(in_flight.begin() + at);
  };
  const std::vector<Entry> all = entries(table);
  for (std::size_t place = 0; place < all.size(); ++place) {
    const Entry& entry = all[place];
    if (!is_in_turn(place, table)) continue;
    const Values* used = nullptr;
    if (reduces(entry.operation)) {
      const std::int64_t combined = combined_of(entry.operation, carrier);
      const bool is_known =
          table.order.size() == 1 ||
          (!entry.has_blocks && facts_of(entry.operation).awaited != Awaited::earlier);
      auto& of_type = values[{entry.type, entry.op, is_known, combined}];
      if (of_type.own.empty())
        of_type =
            values_of(entry.type, entry.op, carrier, is_known ? table.order : Order{}, combined);
      used = &of_type;
    }
    auto attempt = std::make_unique<Attempt>(entry, carrier, used);
    std::function<void()> wait;
    {
      INFO(attempt->text());
      if (is_async(entry.form))
        wait = carrier.start(attempt->call());
      else
        carrier.run(attempt->call());
    }
    if (wait == nullptr) {
      judge(*attempt);
      continue;
    }
    in_flight.push_back({std::move(attempt), std::move(wait)});
    if (in_flight.size() > most_in_flight) finish_one();
  }
  while (!in_flight.empty()) finish_one();
  CHECK(runs > 0);
  CHECK(failures == 0);
}

void check_conformance(GroupCoordinator& group, const Conformance& table) {
  CAPTURE(group.name());
  Carrier carrier{group.size(), group.rank_in_group().value(), {}, {}};
  carrier.run = [&](const Call& call) {
    visit(call.out.type, [&]<class T>(std::type_identity<T>) { run_typed<T>(group, call); });
  };
  carrier.start = [&](const Call& call) -> std::function<void()> {
    auto work = std::make_shared<Work>(detail::GroupAccess::start(group, call));
    return [work] { work->wait(); };
  };
  check_conformance(carrier, table);
}

}  // namespace rankmesh_test