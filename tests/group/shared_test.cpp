// SPDX-License-Identifier: BSD-3-Clause
// Collectives through shared memory.
#include <doctest/doctest.h>

#include <deque>
#include <random>

#include "group/conformance.hpp"
#include "group/shared_cases.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/iterations.hpp"
#include "support/mpi_world.hpp"

using namespace shared_cases;

TEST_CASE("the table of conformance in shared memory, in groups of several sizes") {
  Mesh mesh{MPI_COMM_WORLD, layout(), routed("*.*:host=shm")};
  int turn = 0;
  for (const std::string& name : names(mesh)) {
    rankmesh_test::Conformance table;
    table.share = size() > 4 ? 96 : 32;
    table.turn = turn++;
    table.order = rankmesh_test::in_shared_memory(mesh, mesh[name]);
    check_conformance(mesh[name], table);
  }
  mesh.close();
}

TEST_CASE("a family and its duplicates do not meet in one part of shared memory") {
  MeshOptions options = routed("*.*:host=shm");
  options.names["tp"].duplicates = {"side", "third"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const std::int64_t sum = static_cast<std::int64_t>(size()) * (size() - 1) / 2;
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    std::vector<std::int64_t> ones{1}, ranks{rank()}, twos{2};
    mesh["tp"].all_reduce(ones);
    mesh.duplicate("tp", "side").all_reduce(ranks);
    mesh.duplicate("tp", "third").all_reduce(twos);
    CHECK(ones[0] == size());
    CHECK(ranks[0] == sum);
    CHECK(twos[0] == 2 * size());
  }
  mesh.close();
}

namespace {

// An operation in flight, with its buffers.
struct Item {
  Work work;
  std::vector<std::int64_t> in, out, expected;
};

// Element k that a rank contributes to operation i.
std::int64_t contributed(std::int64_t r, int i, std::int64_t k) {
  return (r * 131 + i * 17 + k) % 1009;
}

// Starts operation i of a group, of a kind that all ranks draw alike. Some are blocking.
void start(Item& item, GroupCoordinator& group, int i, std::mt19937& same) {
  const auto n = static_cast<std::int64_t>(same() % 60);
  for (std::int64_t k = 0; k < n; ++k) item.in.push_back(contributed(rank(), i, k));
  switch (same() % 6) {
    case 0:
    case 1:
      item.out.resize(item.in.size());
      item.expected.assign(item.in.size(), 0);
      for (const Rank member : group.ranks())
        for (std::int64_t k = 0; k < n; ++k)
          item.expected[static_cast<std::size_t>(k)] += contributed(member.value(), i, k);
      if (same() % 4 == 0) {
        group.all_reduce(item.in, item.out);  // a blocking operation in between
      } else {
        item.work = group.all_reduce_async(item.in, item.out);
      }
      break;
    case 2:
      item.work = group.barrier_async();
      break;
    case 3: {
      const Rank root = group.ranks().at(group.size() - 1);
      item.out = item.in;
      for (std::int64_t k = 0; k < n; ++k) item.expected.push_back(contributed(root.value(), i, k));
      item.work = group.broadcast_async(item.out, group.size() - 1);
      break;
    }
    case 4:
      item.out.resize(item.in.size());
      for (std::int64_t k = 0; k < n; ++k)
        item.expected.push_back(contributed(group.prev_rank().value(), i, k));
      if (same() % 2 == 0)
        group.send_recv(item.in, item.out, next, prev, i % 100);
      else
        item.work = group.send_recv_async(item.in, item.out, next, prev, i % 100);
      break;
    default:
      item.out.resize(item.in.size() * static_cast<std::size_t>(group.size()));
      for (const Rank member : group.ranks())
        for (std::int64_t k = 0; k < n; ++k)
          item.expected.push_back(contributed(member.value(), i, k));
      item.work = group.all_gather_async(item.in, item.out);
  }
}

}  // namespace

// All ranks issue the same operations in the same order, but wait for them in different ways and
// orders. Some groups use shared memory, some MPI, and for some the size decides. Blocking
// operations and messages between members come in between.
TEST_CASE("asynchronous operations over shared memory and MPI at once, completed in any order") {
  MeshOptions options =
      routed("tp.*:host=shm; all.all_reduce:host:0-200=shm; all.barrier:host=shm; all.*:host=mpi");
  Mesh mesh{MPI_COMM_WORLD, layout(), options};
  const auto all_names = names(mesh);
  std::mt19937 same{21U + static_cast<unsigned>(size())};
  std::mt19937 own{static_cast<unsigned>(300 + rank())};
  std::deque<Item> flying;
  const auto finish = [&](std::size_t i) {
    Item& item = flying[i];
    switch (own() % 3) {
      case 0:
        item.work.wait();
        break;
      case 1:
        item.work.wait(Deadline::Duration{60});
        break;
      default:
        while (!item.work.test()) mesh.progress();
    }
    CHECK(item.out == item.expected);
    flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(i));
  };
  const int count = rankmesh_test::iterations(800, size());
  for (int i = 0; i < count; ++i) {
    auto& group = mesh[all_names[same() % all_names.size()]];
    start(flying.emplace_back(), group, i, same);
    if (own() % 5 == 0) mesh.progress();
    while (flying.size() > 8) finish(own() % flying.size());
  }
  while (!flying.empty()) finish(own() % flying.size());
  mesh.close();
}

TEST_CASE("dynamic groups, v-forms and reductions of 16-bit floats use shared memory") {
  MeshOptions options = routed("*.*:host=shm");
  options.check = false;  // it compares messages over MPI
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  if (size() > 1) {
    const std::int32_t nodes = mesh.placement().node_count();
    CHECK(mesh["tp"].explain(Operation::all_reduce, 8).transport == (nodes == 1 ? "shm"
                                                                     : nodes < size()
                                                                         ? "hierarchical"
                                                                         : "mpi"));
    for (const DataType narrow : {DataType::bfloat16, DataType::float8_e4m3})
      CHECK(mesh["tp"].explain(Operation::all_reduce, 8, MemoryKind::host, narrow).transport ==
            mesh["tp"].explain(Operation::all_reduce, 8).transport);
    CHECK(mesh["tp"].explain(Operation::send_recv, -1).transport ==
          (nodes == 1 && size() <= 16 ? "shm" : "mpi"));
    for (const Operation v_form : {Operation::all_gather, Operation::all_to_all})
      CHECK(mesh["tp"].explain(v_form, -1).transport == (nodes == 1 ? "shm" : "mpi"));
    CHECK(mesh["tp"].explain(Operation::broadcast, -1).transport == "mpi");
  }
  std::vector<Rank> everybody;
  for (int r = 0; r < size(); ++r) everybody.emplace_back(r);
  const auto group = mesh.new_group(everybody);
  std::vector<int> one{1};
  group->all_reduce(one);
  CHECK(one[0] == size());
  const bool is_shared = mesh.placement().node_count() == 1;
  if (size() > 1)
    CHECK(group->explain(Operation::all_reduce, 4).transport == (is_shared ? "shm" : "mpi"));
  mesh.close();
}
