// SPDX-License-Identifier: BSD-3-Clause
// Waits with a deadline: which ranks are reported as missing.

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// A monitor on a communicator of its own.
struct Monitored {
  mpi::Communicator own = mpi::duplicate(mpi::CommunicatorView{MPI_COMM_WORLD});
  WaitMonitor monitor{own.view(), WaitMonitor::Audience::own, {}};

  // Waits in vain, and returns the error.
  TimeoutError wait_in_vain(const char* activity, double seconds = 0.5) {
    return thrown_by<TimeoutError>([&] {
      monitor.wait([] { return false; }, WaitPoint::of_all(size(), activity),
                   Deadline{Deadline::Duration{seconds}});
    });
  }
};

// Rank 0 waits in vain at a point of `monitored`, while the others wait at another point of
// `elsewhere`. Rank 0 passes its error to `check`. It asks them a second before its deadline, and
// its wait is longer than that: a busy machine lets them begin theirs before the question comes.
void wait_apart(Monitored& monitored, Monitored& elsewhere,
                const std::function<void(const TimeoutError&)>& check,
                double seconds_for_answers = 2) {
  MPI_Request rank_0_is_done = MPI_REQUEST_NULL;
  rankmesh_test::ScopedPatience patience;
  patience.wait_for_answers(seconds_for_answers);
  wait_for_all();
  if (rank() == 0) {
    check(monitored.wait_in_vain("the one wait", 1.5));
    MPI_Ibarrier(MPI_COMM_WORLD, &rank_0_is_done);
    MPI_Wait(&rank_0_is_done, MPI_STATUS_IGNORE);
  } else {
    MPI_Ibarrier(MPI_COMM_WORLD, &rank_0_is_done);
    CHECK_NOTHROW(elsewhere.monitor.wait({&rank_0_is_done, 1},
                                         WaitPoint::of_all(size(), "the other wait"),
                                         Deadline{Deadline::Duration{30}}));
  }
}

std::vector<Rank> all_but_first() {
  std::vector<Rank> ranks;
  for (int r = 1; r < size(); ++r) ranks.emplace_back(r);
  return ranks;
}

}  // namespace

TEST_CASE("ranks that do not wait are missing, and are described") {
  NEEDS_RANKS(2);
  Monitored monitored;
  if (rank() == 0) {
    const TimeoutError error = monitored.wait_in_vain("the first wait");
    CHECK(error.missing() == all_but_first());
    CHECK_CONTAINS(error.message(), "the first wait");
    CHECK_CONTAINS(error.message(), "1 (no mesh)");
  }
  wait_for_all();
}

TEST_CASE("a late answer to an earlier question does not count for a later one") {
  NEEDS_RANKS(2);
  Monitored monitored;
  if (rank() == 0) CHECK(monitored.wait_in_vain("the first wait").missing() == all_but_first());
  wait_for_all();
  // Now the others wait for a moment, at the point that rank 0 will wait at next, and answer the
  // question that is still there.
  if (rank() != 0) {
    const Deadline moment{Deadline::Duration{0.3}};
    CHECK_NOTHROW(monitored.monitor.wait([&] { return moment.passed(); },
                                         WaitPoint::of_all(size(), "the second wait"),
                                         Deadline{Deadline::Duration{30}}));
  }
  wait_for_all();
  // Nobody else waits any more.
  if (rank() == 0) {
    const TimeoutError error = monitored.wait_in_vain("the second wait");
    CHECK(error.missing() == all_but_first());
    CHECK_CONTAINS(error.message(), "the second wait");
  }
  wait_for_all();
}

TEST_CASE("a rank that waits in another mesh is reported with that wait, and is not missing") {
  NEEDS_RANKS(2);
  Monitored monitored;
  Monitored elsewhere;
  for (Monitored* mesh : {&monitored, &elsewhere}) mesh->monitor.answer_in_other_waits();
  wait_apart(monitored, elsewhere, [](const TimeoutError& error) {
    CHECK(error.missing().empty());
    CHECK_CONTAINS(error.message(), "the other wait (in another mesh)");
  });
}

TEST_CASE("a rank that waits in another mesh does not answer for a mesh that it has closed") {
  NEEDS_RANKS(2);
  Monitored monitored;
  Monitored elsewhere;
  monitored.monitor.answer_in_other_waits();
  monitored.monitor.close();
  wait_apart(
      monitored, elsewhere,
      [](const TimeoutError& error) { CHECK(error.missing() == all_but_first()); }, 0.3);
}

TEST_CASE("a rank that waits at another point is reported with that point, and is not missing") {
  NEEDS_RANKS(2);
  Monitored monitored;
  wait_apart(monitored, monitored, [](const TimeoutError& error) {
    CHECK(error.missing().empty());
    CHECK_CONTAINS(error.message(), "1 (no mesh)");
    CHECK_CONTAINS(error.message(), "the other wait");
  });
}
