// SPDX-License-Identifier: BSD-3-Clause
// What the waits of a mesh say about ranks of other nodes.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "mesh/waits_help.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"

using namespace rankmesh;
using rankmesh_test::barrier_in_vain;
using rankmesh_test::busy_machine;
using rankmesh_test::Clock;
using rankmesh_test::last;
using rankmesh_test::name_of;
using rankmesh_test::polling;
using rankmesh_test::rank;
using rankmesh_test::seconds_since;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

TEST_CASE("between nodes: a silent rank is named in time, and learns later that it was given up") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling("mpi", 1)};
  SKIP_UNLESS(mesh.placement().node_count() == size(), "needs one node per rank");
  wait_for_all();
  if (rank() != last()) {
    const auto begin = Clock::now();
    const TimeoutError error = barrier_in_vain(mesh);
    CHECK(seconds_since(begin) >= 0.9);
    CHECK(seconds_since(begin) <= 1.5 + busy_machine);
    CHECK_CONTAINS(error.message(), name_of(last()) + " is silent");
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds{2000});
  }
  wait_for_all();
  if (rank() == last()) {
    const auto begin = Clock::now();
    std::string message;
    try {
      mesh["tp"].barrier();  // the others have begun this one, so it may end
      mesh["tp"].barrier();
    } catch (const PeerError& error) {
      message = error.message();
    }
    CHECK(seconds_since(begin) <= 0.8 + busy_machine);
    CHECK_CONTAINS(message, " gave up tp.barrier(), call 1, after ");
  }
  wait_for_all();
}

TEST_CASE("between nodes: nobody is accused where a rank has left a call out") {
  NEEDS_RANKS(2);
  rankmesh_test::ScopedPatience patience;
  patience.wait_for_answers(1);
  MeshOptions options = polling("mpi", 1.5);
  options.timeout = Deadline::Duration{3};  // the last rank answers until then
  options.check = false;                    // the check would name the rank
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  SKIP_UNLESS(mesh.placement().node_count() == size(), "needs one node per rank");
  mesh["tp"].barrier();
  wait_for_all();
  if (rank() != last()) {
    const TimeoutError error = barrier_in_vain(mesh);
    CHECK_CONTAINS(error.message(), name_of(last()) +
                                        " waits in the agreement before close of the mesh, after "
                                        "call 1 of this group");
    CHECK_CONTAINS(error.hint(), "no rank is missing: a rank has left a call out");
    CHECK(error.missing().empty());
  } else {
    CHECK_THROWS_AS(mesh.close(), TimeoutError);
  }
  wait_for_all();
}

TEST_CASE("between nodes: crossed calls name the members of the other call") {
  NEEDS_RANKS(2);
  rankmesh_test::ScopedPatience patience;
  patience.wait_for_answers(2);
  MeshOptions options = polling("mpi", 1.5);
  options.check = false;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  SKIP_UNLESS(mesh.placement().node_count() == size(), "needs one node per rank");
  (void)mesh["world"];
  const auto other = mesh.new_group(std::vector<int>{0, 1}, "pair");
  wait_for_all();
  try {
    rank() == 0 ? mesh["tp"].barrier() : other->barrier();
    FAIL("the barrier ended");
  } catch (const TimeoutError& error) {
    const std::string theirs = rank() == 0 ? "pair" : "tp";
    CHECK_CONTAINS(
        error.message(),
        "waits in " + theirs + ".barrier(), call 1 of ranks 0-1, before any call of this group");
    CHECK_CONTAINS(error.hint(), "meshinfo trace --collect DIR shows");
  }
  wait_for_all();
}
