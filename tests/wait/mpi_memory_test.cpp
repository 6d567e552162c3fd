// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/mpi_memory.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "wait_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::WaitWorld;

namespace {

int alive = 0;

struct Counted {
  int mine = 0, sum = 0;
  Counted() { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

MPI_Request start_sum(const WaitWorld& world, Counted& values) {
  values.mine = rank() + 1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&values.mine, &values.sum, 1, MPI_INT, MPI_SUM, world.own.view().native(),
                 &request);
  return request;
}

}  // namespace

TEST_CASE("memory of an operation that ended is freed") {
  WaitWorld world;
  const int before = alive;
  {
    MpiMemory<Counted> values;
    CHECK(alive == before + 1);
    values.wait(start_sum(world, *values), world.monitor, world.point, WaitWorld::after(60));
    REQUIRE(values);
    CHECK(values->sum == size() * (size() + 1) / 2);
    CHECK(values.get() == &*values);
  }
  CHECK(alive == before);
}

TEST_CASE(
    "memory of an operation that a rank did not join is leaked, since MPI still writes there") {
  WaitWorld world;
  const int before = alive;
  Counted* address = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    MpiMemory<Counted> values;
    address = values.get();
    if (rank() != last() || size() == 1) {
      request = start_sum(world, *values);
      if (size() == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
      const bool fails = size() > 1;
      if (fails) {
        CHECK_THROWS_AS(values.wait(request, world.monitor, world.point, WaitWorld::after(0.3)),
                        TimeoutError);
        CHECK(!values);
      } else {
        values.leak();
        CHECK(!values);
      }
    } else {
      values.leak();
    }
  }
  CHECK(alive == before + 1);
  rankmesh_test::wait_for_all();
  // The last rank completes the operation: the others find the sum in the memory that was leaked.
  if (size() > 1) {
    if (rank() == last()) request = start_sum(world, *address);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  CHECK(address->sum == size() * (size() + 1) / 2);
  delete address;  // the test knows that the operation has ended
  CHECK(alive == before);
}

TEST_CASE("an operation that fails leaks the memory of its owners, unless it was refused") {
  const int before = alive;
  auto owner = std::make_unique<Counted>();
  std::vector<int> numbers{1, 2, 3};
  run_or_leak([] {}, owner, numbers);
  CHECK(owner != nullptr);
  CHECK_THROWS_AS(run_or_leak([] { throw UsageError{"refused"}; }, owner, numbers), UsageError);
  REQUIRE(owner != nullptr);
  CHECK(numbers.size() == 3);

  Counted* address = owner.get();
  const int* elements = numbers.data();
  CHECK_THROWS_AS(run_or_leak([] { throw DataError{"came to nothing"}; }, owner, numbers),
                  DataError);
  CHECK(owner == nullptr);
  CHECK(numbers.empty());
  CHECK(alive == before + 1);
  CHECK(elements[2] == 3);  // still there
  delete address;
}
