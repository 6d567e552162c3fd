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

// The timeout of the mesh would also end its opening, in which a busy machine may let a rank come
// late.
MeshOptions shared_memory() {
  MeshOptions options;
  options.names["tp"].timeout = size() > 2 ? 2 : 1;
  options.routes = "*.*:host=shm";
  return options;
}

template <class Action>
void names_the_last(Action&& action, const char* operation) {
  const auto error = thrown_by<TimeoutError>(action);
  CAPTURE(error.message());
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
    wait_for_all();
    if (rank() != last()) {
      names_the_last([&] { mesh["tp"].all_reduce(values); },
                     count == 1 ? "tp.all_reduce(1 x float64, sum, in place), call 2 "
                                : "tp.all_reduce(100000 x float64, sum, in place), call 2 ");
      CHECK_THROWS_AS(mesh["tp"].barrier(), ClosedError);
    }
    wait_for_all();
  }
}

TEST_CASE("a member that comes after the others have given up learns for whom they waited") {
  NEEDS_RANKS(3);
  for (const char* const routes : {"*.*:host=shm", "*.*:host=mpi"}) {
    CAPTURE(routes);
    MeshOptions options = shared_memory();
    options.routes = routes;
    options.deadline = short_deadline();
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const bool is_late = rank() == last() - 1;
    std::vector<double> values(1, 1.0);
    mesh["tp"].all_reduce(values);
    wait_for_all();
    if (rank() < last() - 1) CHECK_THROWS_AS(mesh["tp"].all_reduce(values), TimeoutError);
    wait_for_all();
    if (is_late) names_the_last([&] { mesh["tp"].all_reduce(values); }, "tp.all_reduce(1 x");
    wait_for_all();
  }
}

TEST_CASE("a rank that skips a v-form in shared memory is named") {
  for (const std::int64_t count : {1, 100000}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), count);
    const std::vector<float> in(static_cast<std::size_t>(count));
    std::vector<float> out(in.size() * counts.size());
    mesh["tp"].all_gather_v(in, out, counts);
    wait_for_all();
    if (rank() != last())
      names_the_last([&] { mesh["tp"].gather_v(in, out, counts, 0); }, "tp.gather_v(");
    wait_for_all();
  }
}

TEST_CASE("counts that differ in shared memory are a mismatch that names them") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), 20000);
  if (rank() == last()) ++counts.front();
  const std::vector<float> in(20000);
  std::vector<float> out(in.size() * counts.size() + 1);
  const auto error = thrown_by<MismatchError>([&] { mesh["tp"].all_gather_v(in, out, counts); });
  CHECK_CONTAINS(error.message(), "tp.all_gather_v(blocks of 20001,20000");
  CHECK_CONTAINS(error.message(), "tp.all_gather_v(blocks of 20000,20000");
  wait_for_all();
}

TEST_CASE("a Work in shared memory that never ends times out") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", shared_memory()};
  wait_for_all();
  if (rank() != last()) {
    Work first = mesh["tp"].barrier_async();
    Work second = mesh["tp"].barrier_async();
    names_the_last([&] { second.wait(); }, "tp.barrier");
    CHECK_THROWS_AS(mesh["tp"].barrier(), ClosedError);
    CHECK_THROWS_AS(first.wait(Deadline::Duration{0.1}), Error);
  }
  wait_for_all();
}

TEST_CASE("a rank that skips an allocation of symmetric memory is named") {
  MeshOptions options = shared_memory();
  options.timeout = short_deadline();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  wait_for_all();
  if (rank() != last())
    names_the_last([&] { (void)mesh.allocate_symmetric<float>(10, {"tp"}); },
                   "the allocation of symmetric memory");
  wait_for_all();
}
