// SPDX-License-Identifier: BSD-3-Clause
// Cases that fail on purpose, each run by itself by ./reporter.
#include <doctest/doctest.h>

#include <stdexcept>

#include "rankmesh/mpi/native.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using rankmesh_test::rank;

TEST_CASE("all pass") {
  CHECK(rank() >= 0);
  CHECK(rank() < 4);
}

TEST_CASE("check fails on rank 1") {
  INFO("looking at rank " << rank());
  CHECK(rank() != 1);
  MPI_Barrier(MPI_COMM_WORLD);  // a failed check does not keep the rank from going on
}

TEST_CASE("checks fail on ranks 1 and 3") { CHECK(rank() % 2 == 0); }

TEST_CASE("requirement fails on rank 2") {
  REQUIRE(rank() != 2);
  MPI_Barrier(MPI_COMM_WORLD);  // the others would wait here for ever
}

TEST_CASE("exception on rank 3") {
  if (rank() == 3) throw std::runtime_error{"no luck"};
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("message from rank 0") {
  if (rank() == 0) MESSAGE("by the way");
  CHECK(true);
}

TEST_CASE("FAIL on rank 0") {
  if (rank() == 0) FAIL("gives up");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("text without the part on rank 2") {
  CHECK_CONTAINS(rank() == 2 ? "a haystack" : "a needle", "needle");
  CHECK_LACKS("a haystack", "needle");
}

TEST_CASE("needs more ranks") {
  NEEDS_RANKS(99);
  CHECK(false);
}

TEST_CASE("asserts nothing") { MPI_Barrier(MPI_COMM_WORLD); }

TEST_CASE("asserts on rank 3 only") {
  if (rank() == 3) CHECK(rankmesh_test::size() == 4);
}
