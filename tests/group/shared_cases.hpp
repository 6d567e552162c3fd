// SPDX-License-Identifier: BSD-3-Clause
// Random collectives that tests run on shared memory and, for comparison, over MPI.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

namespace shared_cases {

using namespace rankmesh;
using rankmesh_test::all_reductions;
using rankmesh_test::rank;
using rankmesh_test::size;

inline std::string layout() {
  switch (size()) {
    case 4:
      return "dp=2,tp=2 ; all=dp*tp";
    case 8:
      return "dp=2,cp=2,tp=2 ; all=dp*cp*tp, pair=dp*tp";
    case 12:
      return "dp=3,tp=4 ; all=dp*tp";
    case 16:
      return "dp=4,tp=4 ; all=dp*tp";
    default:
      return "dp=1,tp=auto ; all=dp*tp";
  }
}

inline MeshOptions routed(const char* routes) {
  MeshOptions options;
  options.routes = routes;
  return options;
}

inline std::vector<std::string> names(const Mesh& mesh) {
  std::vector<std::string> result;
  for (const GroupFamily& family : mesh.plan().families()) result.push_back(family.name());
  return result;
}

// The arguments that all members pass alike.
struct Case {
  Operation operation;
  ReduceOp op;
  std::int64_t count;  // of a block
  std::int64_t root;
  bool in_place;
};

inline constexpr Operation operations[] = {
    Operation::barrier,    Operation::broadcast,      Operation::all_reduce,
    Operation::all_gather, Operation::reduce_scatter, Operation::all_to_all,
    Operation::reduce,     Operation::gather,         Operation::scatter};

template <class Random>
Case random_case(Random& same, std::int64_t members, bool large) {
  const std::int64_t sizes[] = {0, 1, 2, 13, 64, 1001, large ? 40009 : 7};
  Case c{};
  c.operation = operations[same() % std::size(operations)];
  c.op = all_reductions[same() % std::size(all_reductions)];
  c.count = sizes[same() % std::size(sizes)];
  c.root = static_cast<std::int64_t>(same() % static_cast<unsigned>(members));
  c.in_place = same() % 2 == 0;
  return c;
}

template <class T>
void fill(std::span<T> values, unsigned seed) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((seed * 7 + i * 3) % 3 + 1);
}

// Returns the call on the given memory: `a` and `b` hold count x members elements.
template <class Memory>
void carry_out(GroupCoordinator& group, const Case& c, Memory a, Memory b) {
  const auto count = static_cast<std::size_t>(c.count);
  const std::size_t all = count * static_cast<std::size_t>(group.size());
  const auto own = static_cast<std::size_t>(group.rank_in_group().value()) * count;
  switch (c.operation) {
    case Operation::broadcast:
      return group.broadcast(b.subspan(0, count), c.root);
    case Operation::all_reduce:
      if (c.in_place) return group.all_reduce(b.subspan(0, count), c.op);
      return group.all_reduce(a.subspan(0, count), b.subspan(0, count), c.op);
    case Operation::all_gather:
      if (c.in_place) return group.all_gather(b.subspan(own, count), b.subspan(0, all));
      return group.all_gather(a.subspan(0, count), b.subspan(0, all));
    case Operation::reduce_scatter:
      return group.reduce_scatter(a.subspan(0, all), b.subspan(0, count), c.op);
    case Operation::all_to_all:
      if (c.in_place) return group.all_to_all(b.subspan(0, all), b.subspan(0, all));
      return group.all_to_all(a.subspan(0, all), b.subspan(0, all));
    case Operation::reduce:
      if (c.in_place) return group.reduce(b.subspan(0, count), c.root, c.op);
      return group.reduce(a.subspan(0, count), b.subspan(0, count), c.root, c.op);
    case Operation::gather:
      return group.gather(a.subspan(0, count), b.subspan(0, all), c.root);
    case Operation::scatter:
      return group.scatter(a.subspan(0, all), b.subspan(0, count), c.root);
    default:
      return group.barrier();
  }
}

}  // namespace shared_cases
