// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/wait_monitor.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/checks.hpp"
#include "support/patience.hpp"
#include "wait_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::ScopedPatience;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;
using rankmesh_test::WaitWorld;

TEST_CASE("wait points have the same key on all members, and another for another identity") {
  const std::vector<Rank> members{Rank{1}, Rank{3}};
  const RankSet ranks = RankSet::of(members);
  const WaitPoint point = WaitPoint::of(ranks, "as rank " + std::to_string(rank()), "one thing");
  CHECK(point.members == std::vector<int>{1, 3});
  CHECK(point.activity == "as rank " + std::to_string(rank()));
  CHECK(point.key == WaitPoint::of(ranks, "", "one thing").key);
  CHECK(point.key != WaitPoint::of(ranks, "", "another thing").key);
  const WaitPoint all = WaitPoint::of_all(3, "the start");
  CHECK(all.members == std::vector<int>{0, 1, 2});
  CHECK(all.key == WaitPoint::of_all(3, "the start").key);
  CHECK(all.key != WaitPoint::of_all(3, "the end").key);
}

TEST_CASE("a rank that waits at another point is named with it") {
  WaitWorld world;
  if (size() == 1) {
    CHECK_THROWS_WITH_AS(
        world.monitor.wait([] { return false; }, world.point, WaitWorld::after(0.05)),
        doctest::Contains("all of its ranks wait in it"), TimeoutError);
    return;
  }
  ScopedPatience patience;
  patience.wait_for_answers(2);
  wait_for_all();
  const bool is_elsewhere = rank() == last();
  const WaitPoint elsewhere = WaitPoint::of_all(size(), "another place");
  MPI_Request all = MPI_REQUEST_NULL;  // complete when every other rank has its verdict
  const auto is_over = [&] {
    int flag = 0;
    MPI_Test(&all, &flag, MPI_STATUS_IGNORE);
    return flag != 0;
  };
  if (is_elsewhere) {
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    CHECK_NOTHROW(world.monitor.wait(is_over, elsewhere, WaitWorld::after(60)));
    return;
  }
  try {
    world.monitor.wait([] { return false; }, world.point, WaitWorld::after(1.5));
    FAIL("no exception");
  } catch (const TimeoutError& error) {
    CHECK(error.missing().empty());
    const std::string name = std::to_string(last());
    CHECK_MESSAGE(error.message().find("rank " + name + " (no mesh) waits in another place") !=
                      std::string::npos,
                  error.message());
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  MPI_Wait(&all, MPI_STATUS_IGNORE);
}

TEST_CASE("a rank whose polls take long, as on a crowded machine, answers in time") {
  NEEDS_RANKS(2);
  WaitWorld world;
  ScopedPatience patience;
  patience.wait_for_answers(2);
  wait_for_all();
  MPI_Request all = MPI_REQUEST_NULL;  // complete when every other rank has its error
  if (rank() == last()) {
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    const auto is_over = [&] {
      // The others wait for less than 64 of these polls; see polls_per_look in wait_monitor.cpp.
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      int flag = 0;
      MPI_Test(&all, &flag, MPI_STATUS_IGNORE);
      return flag != 0;
    };
    CHECK_NOTHROW(world.monitor.wait(is_over, WaitPoint::of_all(size(), "another place"),
                                     WaitWorld::after(60)));
    return;
  }
  const auto error = thrown_by<TimeoutError>(
      [&] { world.monitor.wait([] { return false; }, world.point, WaitWorld::after(1.5)); });
  CHECK_CONTAINS(error.message(),
                 "rank " + std::to_string(last()) + " (no mesh) waits in another place");
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  MPI_Wait(&all, MPI_STATUS_IGNORE);
}

TEST_CASE("a rank that gives up another wait point does not end this wait") {
  NEEDS_RANKS(2);
  WaitWorld world;
  if (rank() == last()) world.monitor.give_up(world.point, "no disk");
  wait_for_all();
  const Deadline moment = WaitWorld::after(0.3);
  CHECK_NOTHROW(world.monitor.wait([&] { return moment.passed(); },
                                   WaitPoint::of_all(size(), "another place"),
                                   WaitWorld::after(60)));
  wait_for_all();
}

TEST_CASE(
    "a rank that gives up ends the others' wait with its reason, long before their deadline") {
  WaitWorld world;
  if (rank() == last()) {
    CHECK_NOTHROW(world.monitor.give_up(world.point, "no disk"));
  } else {
    CHECK_THROWS_WITH_AS(
        world.monitor.wait([] { return false; }, world.point, WaitWorld::after(60)),
        doctest::Contains("no disk"), TimeoutError);
  }
  wait_for_all();
}

TEST_CASE("a wait that is over at its deadline succeeds, even if the rank was slow to find out") {
  WaitWorld world;
  ScopedPatience patience;
  patience->verdict = patience->answer = {};
  const Deadline deadline = WaitWorld::after(0.05);
  int polls = 0;
  const auto done = [&] {
    while (!deadline.passed()) {
    }
    return ++polls > 1;
  };
  const WaitPoint alone = WaitPoint::of({rank()}, "a wait of one rank", "one rank");
  CHECK_NOTHROW(world.monitor.wait(done, alone, deadline));
}
