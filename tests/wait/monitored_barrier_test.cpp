// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/monitored_barrier.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "support/checks.hpp"
#include "support/patience.hpp"
#include "wait_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::ScopedPatience;
using rankmesh_test::short_deadline;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using rankmesh_test::WaitWorld;

TEST_CASE("a monitored barrier returns on no rank before every rank has come") {
  WaitWorld world;
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  if (rank() == last()) std::this_thread::sleep_for(std::chrono::milliseconds{50});
  std::int64_t last_came = now();
  monitored_barrier(world.own.view(), world.monitor, world.point, WaitWorld::after(60));
  const std::int64_t left = now();
  MPI_Bcast(&last_came, 1, MPI_INT64_T, last(), MPI_COMM_WORLD);
  CHECK(left >= last_came);
}

TEST_CASE("a monitored barrier names the rank that does not come, on every other rank") {
  WaitWorld world;
  if (size() == 1) {
    CHECK_NOTHROW(
        monitored_barrier(world.own.view(), world.monitor, world.point, WaitWorld::after(60)));
    return;
  }
  ScopedPatience patience;
  patience.wait_for_answers(0.3);
  wait_for_all();
  if (rank() != last()) {
    try {
      monitored_barrier(world.own.view(), world.monitor, world.point, Deadline{short_deadline()});
      FAIL("no exception");
    } catch (const TimeoutError& error) {
      CHECK(error.missing() == std::vector<Rank>{Rank{last()}});
      const std::string named = std::to_string(last()) + " (no mesh)";
      CHECK_MESSAGE(error.message().find(named) != std::string::npos, error.message());
      CHECK_MESSAGE(error.message().find("the start of a test") != std::string::npos,
                    error.message());
    }
  }
  wait_for_all();
  // The other ranks' barriers are still in progress: the last rank's part completes them. If that
  // takes more than a few polls, the last rank first learns that the others have given up.
  if (rank() != last()) return;
  try {
    monitored_barrier(world.own.view(), world.monitor, world.point, WaitWorld::after(60));
  } catch (const PeerError& error) {
    CHECK_CONTAINS(error.message(), "gave up the start of a test");
  }
}
