// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a node read the elements from each other's memory.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "exchange/placed_tensors.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "machine/read_machine.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/scoped_variable.hpp"

using namespace rankmesh;
using rankmesh::exchange::Redistribution;
using rankmesh::exchange::TensorSource;
using rankmesh::exchange::TensorTarget;
using rankmesh_test::fill;
using rankmesh_test::Local;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::transfer;
using rankmesh_test::wait_for_all;

namespace {

// Asked of the node's memory, whatever carries the operations of this mesh.
bool can_read(Mesh& mesh) {
  return size() > 1 && rankmesh::detail::GroupAccess::runtime(mesh["tp"]).node_memory != nullptr;
}

struct Gaps {
  std::int64_t source = 0, target = 0;  // elements between rows
  bool are_different = false;  // further tensors have one more each, and none in turns of 4
  [[nodiscard]] std::int64_t of(std::int64_t gap, std::size_t tensor) const {
    return are_different ? static_cast<std::int64_t>(tensor + static_cast<std::size_t>(gap)) % 4
                         : gap;
  }
};

// Moves the tensors twice, from other memory each time. Returns the bytes that this rank has read.
std::int64_t move_twice(Mesh& mesh, const std::vector<TensorTransfer>& tensors,
                        const Machine* machine, Gaps gaps, std::int64_t memory) {
  std::int64_t done = 0;
  Redistribution move{
      mesh["tp"],
      plan_transfer(tensors, machine),
      {.memory = memory, .progress = [&](std::int64_t now, std::int64_t) { done = now; }}};
  std::vector<Local> unused;  // keeps the first sources, so that the second ones lie elsewhere
  for (int round = 0; round < 2; ++round) {
    std::vector<Local> sources, targets;
    std::vector<TensorSource> in;
    std::vector<TensorTarget> out;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const TensorTransfer& tensor = tensors[t];
      fill(tensor.from, sources.emplace_back(tensor.from, gaps.of(gaps.source, t)), round);
      targets.emplace_back(tensor.to, gaps.of(gaps.target, t));
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      in.push_back(sources[t].source());
      out.push_back(targets[t].target());
    }
    const auto before = sources.front().memory;
    move.start(in, out).wait();
    CHECK(sources.front().memory == before);
    CHECK(done == move.bytes());
    for (std::size_t t = 0; t < tensors.size(); ++t)
      rankmesh_test::check(tensors[t].to, targets[t], round);
    for (Local& source : sources) unused.push_back(std::move(source));
  }
  return move.bytes_read_directly();
}

void check_reads(Mesh& mesh, const std::vector<TensorTransfer>& tensors,
                 const Machine* machine = nullptr, Gaps gaps = {},
                 std::int64_t memory = std::int64_t{64} << 20) {
  std::int64_t read = move_twice(mesh, tensors, machine, gaps, memory);
  mesh["tp"].all_reduce(std::span{&read, 1});
  if (mesh.placement().node_count() == 1) CHECK((read > 0) == can_read(mesh));
}

const TensorTransfer& rows_to_columns() {
  static const TensorTransfer moved =
      transfer("[32,1024] f64 @ tp=N : (tp, _)", "[32,1024] f64 @ tp=N : (_, tp)");
  return moved;
}

}  // namespace

TEST_CASE("ranks of a node read elements from each other's memory") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  check_reads(mesh, {rows_to_columns()});
  // Short runs at the receiver, a conversion to a smaller and to a larger type, and all of these
  // together with a tensor that is too small alone.
  const auto columns_to_rows =
      transfer("[1024,32] f64 @ tp=N : (_, tp)", "[1024,32] f64 @ tp=N : (tp, _)");
  const auto smaller =
      transfer("[32,2048] f32 @ tp=N : (tp, _)", "[32,2048] bf16 @ tp=N : (_, tp)");
  const auto larger = transfer("[32,4096] f16 @ tp=N : (tp, _)", "[32,4096] f64 @ tp=N : (_, tp)");
  const auto few = transfer("[7] f64 @ tp=N : (_)", "[7] f64 @ tp=N on 1-L,0 : (tp)");
  check_reads(mesh, {columns_to_rows, smaller, few, larger});
  mesh.close();
}

TEST_CASE("memory with gaps is read directly") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  check_reads(mesh, {rows_to_columns()}, nullptr, {.source = 5, .target = 3});
  mesh.close();
}

TEST_CASE("many tensors, with gaps of their own or without, are read directly") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  // Two kinds in turns, more of them than the receiver looks up at a time.
  const auto rows =
      transfer("[4,512] f32 @ tp=N : (_, tp)", "[4,512] f32 @ tp=N on 1-L,0 : (_, tp)");
  const auto whole =
      transfer("[3,N,128] f32 @ tp=N : (_, tp, _)", "[3,N,128] f32 @ w=1 : (_, _, _)");
  std::vector<TensorTransfer> tensors;
  for (int i = 0; i < 1100; ++i) tensors.push_back(i % 3 == 0 ? whole : rows);
  check_reads(mesh, tensors, nullptr, {.source = 1, .target = 3, .are_different = true});
  mesh.close();
}

TEST_CASE("single elements with gaps between them are read directly") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  // The source is packed, and the target is stored element by element.
  const auto moved =
      transfer("[N,4096] f32 @ tp=N : (tp, _)", "[N,4096] f32 @ tp=N on 1-L,0 : (tp, _)");
  const auto value = [](int owner, std::size_t i) {
    return static_cast<float>(10000 * owner) + static_cast<float>(i);
  };
  std::vector<float> in(2 * 4096), out(3 * 4096);
  for (std::size_t i = 0; i < 4096; ++i) in[2 * i] = value(rank(), i);
  Redistribution move{mesh["tp"], plan_transfer(moved.from, moved.to)};
  move.start({in, {8192, 2}}, {out, {12288, 3}}).wait();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 4096; ++i)
    wrong += out[3 * i] == value((rank() + size() - 1) % size(), i) ? 0U : 1U;
  CHECK(wrong == 0);
  mesh.close();
}

TEST_CASE("short runs are packed in pieces of the memory") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const auto columns = transfer("[256,128] f64 @ tp=N : (tp, _)", "[256,128] f64 @ tp=N : (_, tp)");
  const auto cyclic = transfer("[512,33] f32 @ tp=N : (tp:cyclic(5), _)",
                               "[512,33] bf16 @ tp=N : (tp:cyclic(3), _)");
  const auto both = transfer("[160,130] f64 @ tp=N : (_, tp:cyclic(9))",
                             "[160,130] f64 @ tp=N : (_, tp:cyclic(4))");
  // Pieces of 4 KiB, and of a length that divides nothing.
  for (const std::int64_t memory : {16384, 17000})
    check_reads(mesh, {columns, cyclic, both}, nullptr, {.target = 1}, memory * size());
  mesh.close();
}

TEST_CASE("elements that were read directly are passed on directly") {
  NEEDS_MULTIPLE_OF(4);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = size()});
  check_reads(mesh,
              {transfer("[16,2048] f32 @ tp=2 on 0-1 : (tp, _)", "[16,2048] bf16 @ tp=N : (_, _)")},
              &machine);
  mesh.close();
}

TEST_CASE("where direct reads are switched off, messages carry the elements") {
  NEEDS_RANKS(2);
  const rankmesh_test::ScopedVariable off{"RANKMESH_SINGLE_COPY", "off"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  check_reads(mesh, {rows_to_columns()});
  mesh.close();
}
