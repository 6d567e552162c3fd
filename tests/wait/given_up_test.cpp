// SPDX-License-Identifier: BSD-3-Clause
// Ranks that give up tell the others why. These monitors have no board, as between nodes.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "support/checks.hpp"
#include "support/patience.hpp"
#include "wait_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using rankmesh_test::WaitWorld;

namespace {

// Waits for a moment, so that messages are received.
void wait_elsewhere(WaitWorld& world) {
  const Deadline moment = WaitWorld::after(0.2);
  world.monitor.wait([&] { return moment.passed(); }, WaitPoint::of_all(size(), "another place"),
                     WaitWorld::after(60));
}

// Returns the error of a wait that would take long, and checks that it comes at once.
TimeoutError fails_at_once(WaitWorld& world, const WaitPoint& point) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    world.monitor.wait([] { return false; }, point, WaitWorld::after(60));
  } catch (const TimeoutError& error) {
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{4});
    return error;
  }
  FAIL("the wait ended");
  return TimeoutError{"", "", {}};
}

// Checks that a wait at the point is not disturbed.
void does_not_fail(WaitWorld& world, const WaitPoint& point) {
  const Deadline moment = WaitWorld::after(0.2);
  CHECK_NOTHROW(world.monitor.wait([&] { return moment.passed(); }, point, WaitWorld::after(60)));
}

std::string last_gave_up() { return "rank " + std::to_string(last()) + " (no mesh) gave up "; }

}  // namespace

TEST_CASE("a rank that comes later to a point learns that another has given it up, once") {
  NEEDS_RANKS(2);
  WaitWorld world;
  if (rank() == last()) world.monitor.give_up(world.point, "no disk");
  wait_for_all();
  if (rank() != last()) {
    wait_elsewhere(world);  // receives the message there
    const TimeoutError error = fails_at_once(world, world.point);
    CHECK(error.message() == last_gave_up() + "the start of a test: no disk");
    CHECK(error.missing() == std::vector<Rank>{last()});
    does_not_fail(world, world.point);  // the program may try again
  }
  wait_for_all();
}

TEST_CASE("a rank whose deadline passed tells those who come later, with what it was and why") {
  NEEDS_RANKS(2);
  WaitWorld world;
  if (rank() == last()) {
    CHECK_THROWS_AS(world.monitor.wait([] { return false; }, world.point, WaitWorld::after(0.3)),
                    TimeoutError);
  }
  wait_for_all();
  if (rank() != last()) {
    const TimeoutError error = fails_at_once(world, world.point);
    CHECK_CONTAINS(error.message(), last_gave_up() + "the start of a test, after ");
    CHECK_CONTAINS(error.message(), "silent");
    // For whom it waited, apart from this rank.
    std::vector<Rank> others;
    for (int other = 0; other < size() - 1; ++other)
      if (other != rank()) others.emplace_back(other);
    if (others.empty()) others.push_back(last());
    CHECK(error.missing() == others);
  }
  wait_for_all();
}

TEST_CASE(
    "a rank that has failed at a point itself does not hear of that attempt in the next one") {
  NEEDS_RANKS(2);
  WaitWorld world;
  if (rank() == last()) world.monitor.give_up(world.point, "no disk");
  wait_for_all();
  // These fail before they look for messages.
  if (rank() != last())
    CHECK_THROWS_AS(world.monitor.wait([]() -> bool { throw DataError{"a torn page"}; },
                                       world.point, WaitWorld::after(60)),
                    DataError);
  wait_for_all();
  does_not_fail(world, world.point);
  wait_for_all();
  // In the second attempt, one rank gives up before the others have begun it.
  if (rank() == last()) world.monitor.give_up(world.point, "no disk again");
  wait_for_all();
  if (rank() != last())
    CHECK(fails_at_once(world, world.point).message() ==
          last_gave_up() + "the start of a test: no disk again");
  wait_for_all();
}

TEST_CASE("a monitor does not hear what an earlier one on its communicator has said") {
  NEEDS_RANKS(2);
  const mpi::Communicator shared = mpi::duplicate(mpi::CommunicatorView{MPI_COMM_WORLD});
  const auto monitor = [&](std::uint64_t number) {
    return WaitMonitor{shared.view(), WaitMonitor::Audience::shared, {}, nullptr, number};
  };
  WaitMonitor first = monitor(1);
  WaitMonitor second = monitor(2);
  const WaitPoint point = WaitPoint::of_all(size(), "the start of a test");
  if (rank() == last()) first.give_up(point, "no disk");
  wait_for_all();
  CHECK_NOTHROW(second.require_not_given_up(point));
  wait_for_all();
  if (rank() == last()) second.give_up(point, "no disk again");
  wait_for_all();
  if (rank() != last())
    CHECK_THROWS_WITH_AS(second.require_not_given_up(point), doctest::Contains("no disk again"),
                         PeerError);
  wait_for_all();
}

TEST_CASE("giving up one operation of a scope ends all later ones of the scope") {
  NEEDS_RANKS(2);
  WaitWorld world;
  WaitPoint first = WaitPoint::of_all(size(), "tp.all_reduce, call 7");
  WaitPoint second = WaitPoint::of_all(size(), "tp.barrier, call 8");
  WaitPoint other = WaitPoint::of_all(size(), "dp.barrier, call 1");
  first.scope = second.scope = 7;
  other.scope = 8;
  if (rank() == last()) world.monitor.give_up(first, "no disk");
  wait_for_all();
  if (rank() != last()) {
    does_not_fail(world, other);
    for (int i = 0; i < 2; ++i)
      CHECK_CONTAINS(fails_at_once(world, second).message(),
                     last_gave_up() + "tp.all_reduce, call 7: no disk");
    does_not_fail(world, other);
  }
  wait_for_all();
}

TEST_CASE("a point that may repeat is tried again without the earlier failure") {
  NEEDS_RANKS(2);
  WaitWorld world;
  world.point.may_repeat = true;
  if (rank() == last()) {
    CHECK_THROWS_AS(world.monitor.wait([] { return false; }, world.point, WaitWorld::after(0.1)),
                    TimeoutError);
  }
  wait_for_all();
  does_not_fail(world, world.point);
  wait_for_all();
}

TEST_CASE("a rank that may not give up any more completes its wait, and tells nobody") {
  NEEDS_RANKS(2);
  WaitWorld world;
  if (rank() == last()) {
    bool is_complete = false;
    world.point.may_give_up = [&] {
      is_complete = true;  // all others have come
      return false;
    };
    CHECK_NOTHROW(
        world.monitor.wait([&] { return is_complete; }, world.point, WaitWorld::after(0.1)));
    CHECK(is_complete);
  }
  wait_for_all();
  does_not_fail(world, world.point);
  wait_for_all();
}

TEST_CASE("an exception of an operation is given up too, but a UsageError is not") {
  NEEDS_RANKS(2);
  WaitWorld world;
  const auto fails = [&](const auto& error) {
    CHECK_THROWS(
        world.monitor.wait([&]() -> bool { throw error; }, world.point, WaitWorld::after(60)));
  };
  if (rank() == last()) fails(UsageError{"a message of another length"});
  wait_for_all();
  if (rank() != last()) does_not_fail(world, world.point);
  wait_for_all();
  if (rank() == last()) fails(DataError{"a torn page"});
  wait_for_all();
  if (rank() != last())
    CHECK_CONTAINS(fails_at_once(world, world.point).message(),
                   last_gave_up() + "the start of a test: a torn page");
  wait_for_all();
}

TEST_CASE("a rank that learns elsewhere whom it has missed passes these ranks on") {
  NEEDS_RANKS(3);
  WaitWorld world;
  if (rank() == last()) {
    const auto fails = []() -> bool { throw TimeoutError{"rank 0 is stopped", "", {Rank{0}}}; };
    CHECK_THROWS_AS(world.monitor.wait(fails, world.point, WaitWorld::after(60)), TimeoutError);
  }
  wait_for_all();
  if (rank() != last()) {
    const TimeoutError error = fails_at_once(world, world.point);
    CHECK(error.message() == last_gave_up() + "the start of a test: rank 0 is stopped");
    CHECK(error.missing() == std::vector<Rank>{Rank{rank() == 0 ? last() : 0}});
  }
  wait_for_all();
}

TEST_CASE("a rank that has left ends the waits for it, and no others") {
  NEEDS_RANKS(3);
  WaitWorld world;
  if (rank() == last()) world.monitor.leave("no disk");
  wait_for_all();
  if (rank() != last()) {
    const WaitPoint without = WaitPoint::of({0, 1}, "the wait of two", "two");
    does_not_fail(world, without);
    const TimeoutError error = fails_at_once(world, world.point);
    CHECK(error.message() ==
          "rank " + std::to_string(last()) + " (no mesh) left the mesh by an exception: no disk");
    CHECK(error.missing() == std::vector<Rank>{last()});
  }
  wait_for_all();
}

TEST_CASE("a rank that has left after it has done its part does not end the wait") {
  NEEDS_RANKS(2);
  WaitWorld world;
  if (rank() == last()) world.monitor.leave("no disk");
  wait_for_all();
  if (rank() != last()) {
    const Deadline part_arrives = WaitWorld::after(0.03);
    CHECK_NOTHROW(world.monitor.wait([&] { return part_arrives.passed(); }, world.point,
                                     WaitWorld::after(60)));
    (void)fails_at_once(world, world.point);
  }
  wait_for_all();
}

TEST_CASE("a question about a point that was given up is answered with the reason") {
  NEEDS_RANKS(2);
  WaitWorld world;
  WaitPoint pair = WaitPoint::of({0, last()}, "the wait of two", "two");
  pair.may_repeat = true;  // so that nobody is told before
  MPI_Request over = MPI_REQUEST_NULL;
  if (rank() == last()) {
    CHECK_THROWS_AS(world.monitor.wait([] { return false; }, pair, WaitWorld::after(0.1)),
                    TimeoutError);
  }
  rankmesh_test::ScopedPatience patience;
  patience.wait_for_answers(2);
  wait_for_all();
  if (rank() == 0) {
    // The other one waits elsewhere now, and answers shortly before the deadline.
    CHECK_THROWS_WITH_AS(world.monitor.wait([] { return false; }, pair, WaitWorld::after(1.5)),
                         doctest::Contains("gave up the wait of two, after "), TimeoutError);
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &over);
  CHECK_NOTHROW(world.monitor.wait({&over, 1}, WaitPoint::of_all(size(), "another place"),
                                   WaitWorld::after(60)));
}
