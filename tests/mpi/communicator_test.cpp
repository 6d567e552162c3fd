// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include <vector>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/datatype.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/mpi/error.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

TEST_CASE("the order of NCCL's kernels is set when asked for, and the user's own setting stays") {
  const char* variable = "NCCL_LAUNCH_ORDER_IMPLICIT";
  unsetenv(variable);
  { const mpi::Environment environment{mpi::ThreadLevel::single}; }
  CHECK(std::getenv(variable) == nullptr);
  { const mpi::Environment environment{mpi::ThreadLevel::single, mpi::NcclLaunchOrder::implicit}; }
  REQUIRE(std::getenv(variable) != nullptr);
  CHECK(std::string{std::getenv(variable)} == "1");
  setenv(variable, "0", 1);
  { const mpi::Environment environment{mpi::ThreadLevel::single, mpi::NcclLaunchOrder::implicit}; }
  CHECK(std::string{std::getenv(variable)} == "0");
  unsetenv(variable);
}

TEST_CASE("an environment attaches to an initialised MPI and leaves it running") {
  {
    const mpi::Environment environment{mpi::ThreadLevel::single};
    CHECK(!environment.initialised_here());
    CHECK(environment.thread_level() >= mpi::ThreadLevel::single);
  }
  CHECK(mpi::is_active());
  int level = 0;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    CHECK_THROWS_WITH_AS(mpi::Environment{mpi::ThreadLevel::multiple},
                         doctest::Contains("but MPI_THREAD_MULTIPLE was requested"), UsageError);
}

TEST_CASE("a split orders by key, and an undefined colour gives nothing") {
  const mpi::CommunicatorView world{MPI_COMM_WORLD};
  auto reversed = mpi::split(world, 0, size() - rank());
  REQUIRE(reversed);
  CHECK(reversed.view().rank() == size() - 1 - rank());
  auto odd = mpi::split(world, rank() % 2 == 1 ? 0 : MPI_UNDEFINED, rank());
  CHECK(bool{odd} == (rank() % 2 == 1));
  odd.free();
  reversed.free();
  CHECK(!reversed);
  reversed.free();  // of an empty owner, which does nothing
}

TEST_CASE("create_group is collective over its members alone, and keeps their order") {
  const mpi::CommunicatorView world{MPI_COMM_WORLD};
  std::vector<int> members;
  for (int r = size() - 1; r >= 0; r -= 2) members.push_back(r);
  if ((size() - 1 - rank()) % 2 == 0) {
    auto group = mpi::create_group(world, members, 7);
    CHECK(group.view().rank() == (size() - 1 - rank()) / 2);
    CHECK(group.view().size() == static_cast<int>(members.size()));
    group.free();
  }
}

TEST_CASE("a moved-from owner is null; MPI_Finalize frees the handles that are left") {
  auto first = mpi::duplicate(mpi::CommunicatorView{MPI_COMM_WORLD});
  const MPI_Comm handle = first.view().native();
  mpi::Communicator second{std::move(first)};
  CHECK(!first);  // NOLINT: that is the point
  CHECK(second.view().native() == handle);
  first = std::move(second);
  CHECK(first.view().native() == handle);
  mpi::Communicator third = mpi::duplicate(first.view());
  third = std::move(first);  // the duplicate is left to MPI_Finalize
}

TEST_CASE("handles that are not intracommunicators throw") {
  CHECK_THROWS_WITH_AS(mpi::CommunicatorView{MPI_COMM_NULL}, doctest::Contains("MPI_COMM_NULL"),
                       UsageError);
  NEEDS_RANKS(2);
  auto half = mpi::split(mpi::CommunicatorView{MPI_COMM_WORLD}, rank() % 2, rank());
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Intercomm_create(half.view().native(), 0, MPI_COMM_WORLD, rank() % 2 == 0 ? 1 : 0, 3, &inter);
  CHECK_THROWS_WITH_AS(mpi::CommunicatorView{inter}, doctest::Contains("intercommunicator"),
                       UsageError);
  MPI_Comm_free(&inter);
  half.free();
}

TEST_CASE("errors keep MPI's code and the source location") {
  auto comm = mpi::duplicate(mpi::CommunicatorView{MPI_COMM_WORLD});
  try {
    int value = 0;
    mpi::check(MPI_Send(&value, 1, MPI_INT, size() + 5, 0, comm.view().native()), "MPI_Send");
    FAIL("no exception");
  } catch (const mpi::MpiError& error) {
    int error_class = 0;
    MPI_Error_class(error.code(), &error_class);
    CHECK(error_class == MPI_ERR_RANK);
    CHECK_CONTAINS(error.message(), "MPI_Send failed");
    CHECK_CONTAINS(error.message(), "communicator_test.cpp");
  }
  comm.free();
}

TEST_CASE("an error that calls of other lengths may cause says what names the rank") {
  try {
    mpi::check(MPI_ERR_TRUNCATE, "MPI_Recv");
    FAIL("no exception");
  } catch (const mpi::MpiError& error) {
    CHECK_CONTAINS(error.hint(), "RANKMESH_CHECK=1 names the rank");
  }
}

TEST_CASE("a counted type has exactly the size of its elements") {
  for (const std::int64_t count : {0, 1, 6, 7, 8, 20, 21}) {
    const mpi::CountedType type{count, DataType::int32, 7};
    int bytes = 0;
    MPI_Type_size(type.type(), &bytes);
    CHECK(static_cast<std::int64_t>(bytes) * type.count() == count * 4);
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_extent(type.type(), &lower, &extent);
    CHECK(extent * type.count() == count * 4);
  }
}
