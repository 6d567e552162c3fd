// SPDX-License-Identifier: BSD-3-Clause
// Every operation of a coordinator, over groups of a mesh, counts and chunk sizes.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "group/conformance.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::size;

namespace {

// Meshes of the job's size with groups of different shapes.
std::vector<std::string> meshes() {
  switch (size()) {
    case 4:
      return {"dp=2,tp=2", "tp=4"};
    case 6:
      return {"pp=3,tp=2", "dp=2,tp=3 ; all=dp*tp"};
    case 8:
      return {"pp=2,dp=2,tp=2 | pp=2,ep=4"};
    case 12:
      return {"pp=2,dp=3,tp=2"};
    case 16:
      return {"pp=2,dp=2,tp=4"};
    default:
      return {"tp=auto"};
  }
}

}  // namespace

TEST_CASE("the table of conformance, over all names of a mesh") {
  int turn = 0;
  for (const std::string& text : meshes()) {
    Mesh mesh{MPI_COMM_WORLD, text};
    CAPTURE(text);
    for (const GroupFamily& family : mesh.plan().families()) {
      rankmesh_test::Conformance table;
      table.share = size() > 4 ? 48 : 12;
      table.turn = turn++;
      check_conformance(mesh[family.name()], table);
    }
    mesh.close();
  }
}

TEST_CASE("counts above the limit of MPI are divided, blocking and asynchronous") {
  for (const bool polled : {false, true}) {
    MeshOptions options;
    options.largest_count = 7;
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    rankmesh_test::Conformance table;
    table.types = {DataType::float64, DataType::int16, DataType::bfloat16, DataType::float8_e5m2};
    table.counts = {0, 1, 6, 7, 8, 14, 29};
    table.share = size() > 4 ? 12 : 3;
    table.turn = polled ? 1 : 0;
    check_conformance(mesh["tp"], table);
    mesh.close();
  }
}

TEST_CASE("a chain of messages along a group") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::vector<std::int32_t> passed(1000, tp.is_first() ? 1 : 0);
  if (!tp.is_first()) tp.recv(passed, prev);
  CHECK(passed ==
        std::vector<std::int32_t>(1000, static_cast<int>(tp.rank_in_group().value()) + 1));
  for (std::int32_t& value : passed) ++value;
  if (!tp.is_last()) tp.send(passed, next);
  mesh.close();
}

TEST_CASE("std::byte can be sent from any contiguous range") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::array<float, 3> array{1, 2, 3};
  tp.all_reduce(array);
  CHECK(array[2] == 3.0F * static_cast<float>(tp.size()));
  std::vector<float> vector(4, 1.0F);
  tp.all_reduce(std::span{vector}.subspan(1, 2));
  CHECK(vector[0] == 1.0F);
  CHECK(vector[1] == static_cast<float>(tp.size()));
  std::vector<std::byte> bytes(3,
                               std::byte{static_cast<unsigned char>(tp.rank_in_group().value())});
  tp.broadcast(bytes, 0);
  CHECK(bytes[2] == std::byte{0});
  double one = 1;
  tp.all_reduce(std::span{&one, 1});
  CHECK(one == static_cast<double>(tp.size()));
  mesh.close();
}
