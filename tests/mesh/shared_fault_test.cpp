// SPDX-License-Identifier: BSD-3-Clause
// Members that are missing in an operation in shared memory: the mesh's deadline ends the others.
#include <doctest/doctest.h>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::short_deadline;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

MeshOptions shared_memory() {
  MeshOptions options;
  options.timeout = short_deadline();
  options.routes = "*.*:host=shm";
  return options;
}

template <class Action>
void names_the_last(Action&& action, const char* operation) {
  const auto error = thrown_by<TimeoutError>(action);
  CHECK(error.missing() == std::vector<Rank>{Rank{last()}});
  CHECK_CONTAINS(error.message(), operation);
}

}  // namespace

// This also holds without the option `deadline`, because shared memory never waits for ever.
TEST_CASE("a rank that skips a collective in shared memory is named, and the group is broken") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100000}}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
    std::vector<double> values(count, 1.0);
    mesh["tp"].all_reduce(values);
    if (rank() != last()) {
      names_the_last([&] { mesh["tp"].all_reduce(values); },
                     count == 1 ? "tp.all_reduce(1 x float64, sum, in place), call 2 "
                                : "tp.all_reduce(100000 x float64, sum, in place), call 2 ");
      CHECK_THROWS_AS(mesh["tp"].barrier(), ClosedError);
    }
    wait_for_all();
  }
}

TEST_CASE("a Work in shared memory that never ends times out") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
  if (rank() != last()) {
    Work first = mesh["tp"].barrier_async();
    Work second = mesh["tp"].barrier_async();
    names_the_last([&] { second.wait(); }, "tp.barrier");
    CHECK_THROWS_AS(mesh["tp"].barrier(), ClosedError);
    CHECK_THROWS_AS(first.wait(Deadline::Duration{0.1}), Error);
  }
  wait_for_all();
}

TEST_CASE("a rank that skips native_mpi is named, if the communicator has to be created") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
  if (rank() != last())
    names_the_last([&] { (void)mesh["tp"].native_mpi(); }, "tp.barrier(), call 1 ");
  wait_for_all();
}

TEST_CASE("native_mpi and another call of the same group are a mismatch") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
  const auto error = thrown_by<MismatchError>([&] {
    if (rank() == last())
      (void)mesh["tp"].all_reduce(rank());
    else
      (void)mesh["tp"].native_mpi();
  });
  CHECK_CONTAINS(error.message(), "tp.barrier");
  CHECK_CONTAINS(error.message(), "tp.all_reduce");
  wait_for_all();
}

TEST_CASE("a rank that skips an allocation of symmetric memory is named") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
  if (rank() != last())
    names_the_last([&] { (void)mesh.allocate_symmetric<float>(10, {"tp"}); },
                   "the allocation of symmetric memory");
  wait_for_all();
}
