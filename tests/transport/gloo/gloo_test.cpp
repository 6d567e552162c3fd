// SPDX-License-Identifier: BSD-3-Clause
// The transport over Gloo: the results of MPI, what it declines, and what happens if a member
// fails.
#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "../../../examples/transports/gloo/gloo_transport.hpp"
#include "group/conformance.hpp"
#include "group/shared_cases.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace shared_cases;

namespace {

MeshOptions by_gloo() {
  MeshOptions options = routed("*.*:host=gloo");
  options.transports = {{"gloo", open_gloo}};
  return options;
}

}  // namespace

TEST_CASE("the table of conformance by Gloo, in groups of several sizes") {
  Mesh mesh{MPI_COMM_WORLD, layout(), by_gloo()};
  int turn = 0;
  for (const std::string& name : names(mesh)) {
    rankmesh_test::Conformance table;
    table.share = size() > 4 ? 96 : 32;
    table.turn = turn++;
    check_conformance(mesh[name], table);
  }
  mesh.close();
}

TEST_CASE("Gloo declines what it does not carry, and explain() says so") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", by_gloo()};
  GroupCoordinator& tp = mesh["tp"];
  if (size() == 1) {
    CHECK(tp.explain(Operation::all_reduce, 64).transport == "local");
    return mesh.close();
  }
  const RouteExplanation sum = tp.explain(Operation::all_reduce, 64);
  CHECK(sum.transport == "gloo");
  CHECK(sum.rule == "*.*:host=gloo");
  REQUIRE(sum.async_form.size() == 1);
  CHECK(sum.async_form[0].transport != "gloo");
  CHECK_CONTAINS(sum.to_string(), "asynchronously: ");
  CHECK_CONTAINS(sum.to_string(), "it has no asynchronous forms");
  CHECK_CONTAINS(tp.explain(Operation::reduce_scatter, 64).to_string(),
                 "Gloo has no reduce_scatter");
  CHECK_CONTAINS(tp.explain(Operation::send, -1).to_string(),
                 "messages between two members do not use transports of the program");
  CHECK(tp.explain(Operation::all_gather, -1).transport == "gloo");
  CHECK_CONTAINS(tp.explain(Operation::all_to_all, -1).to_string(),
                 "blocks of different sizes in all_gather only");
  CHECK_CONTAINS(tp.explain(Operation::broadcast, 0).to_string(), "cannot send empty buffers");

  // The operations that it declines work all the same.
  std::vector<double> values(8, 1.0);
  tp.all_reduce_async(std::span{values}).wait();
  tp.all_reduce(values, ReduceOp::avg);
  CHECK(values == std::vector<double>(8, size()));
  mesh.close();
}

TEST_CASE("blocks of different sizes are gathered by Gloo") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", by_gloo()};
  std::vector<std::int64_t> counts, places;
  std::vector<std::int32_t> expected;
  for (int r = 0; r < size(); ++r) {
    counts.push_back(r % 3);
    places.push_back(static_cast<std::int64_t>(expected.size()));
    for (int i = 0; i < r % 3; ++i) expected.push_back(100 * r + i);
    expected.push_back(-1);  // a gap
  }
  std::vector<std::int32_t> out(expected.size(), -1);
  std::vector<std::int32_t> in;
  for (int i = 0; i < rank() % 3; ++i) in.push_back(100 * rank() + i);
  mesh["tp"].all_gather_v(in, out, Blocks{counts, places});
  CHECK(out == expected);
  mesh.close();
}

TEST_CASE("some members may use the asynchronous form of a call that Gloo carries") {
  MeshOptions options = by_gloo();
  options.routes += "; *.*:host=mpi";  // shared memory would refuse the mixture
  options.check = true;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  for (int i = 0; i < 10; ++i) {
    std::vector<int> values{1};
    if ((rank() + i) % 2 == 0)
      mesh["tp"].all_reduce(values);
    else
      mesh["tp"].all_reduce_async(std::span{values}).wait();
    CHECK(values[0] == size());
  }
  mesh.close();
}

TEST_CASE("members that make different calls over Gloo learn it before Gloo gets them") {
  NEEDS_RANKS(2);
  MeshOptions options = by_gloo();
  options.check = true;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<int> values(rank() == 0 ? 3 : 4, 1);
  try {
    mesh["tp"].all_reduce(values);
    FAIL("must throw");
  } catch (const MismatchError& error) {
    CHECK_CONTAINS(error.message(), "tp.all_reduce(3 x int32, sum");
    CHECK_CONTAINS(error.message(), "tp.all_reduce(4 x int32, sum");
  }
}

TEST_CASE("a member that does not come to a call of Gloo is named at the deadline") {
  NEEDS_RANKS(2);
  MeshOptions options = by_gloo();
  options.deadline = Deadline::Duration{2};  // Gloo has it for its connections too
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<int> values{1};
  mesh["tp"].all_reduce(values);
  rankmesh_test::wait_for_all();
  if (rank() == rankmesh_test::last()) {
    rankmesh_test::wait_for_all();
    return;
  }
  try {
    mesh["tp"].all_reduce(values);
    FAIL("must throw");
  } catch (const TimeoutError& error) {
    CHECK(error.missing() == std::vector{Rank{rankmesh_test::last()}});
  }
  rankmesh_test::wait_for_all();
}

TEST_CASE("operations of other groups go on while Gloo waits for a late member") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", by_gloo()};
  std::vector<int> started{1}, summed{1};
  // The last member completes the asynchronous operation first, and needs the others for it.
  Work work = mesh["all"].all_reduce_async(std::span{started});
  if (rank() == rankmesh_test::last()) work.wait();
  mesh["tp"].all_reduce(summed);
  work.wait();
  CHECK(started[0] == size());
  CHECK(summed[0] == size());
  mesh.close();
}
