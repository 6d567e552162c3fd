// SPDX-License-Identifier: BSD-3-Clause
// Ranks that differ, fail, are late or are missing. Every wait here ends by a deadline of the test.
#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"
#include "support/watchdog.hpp"

using namespace rankmesh;
using rankmesh_test::has_part;
using rankmesh_test::is_same_as_on_first;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::short_deadline;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;
using rankmesh_test::Watchdog;

namespace {

// For tests of the opening, of new_group and of close. The timeout also ends each step of the
// opening, in which a busy machine may let a rank come late.
MeshOptions short_timeout(Deadline::Duration timeout = Deadline::Duration{1.5}) {
  MeshOptions options;
  options.timeout = timeout;
  return options;
}

// Returns the message of the error that `action` throws, and checks that it is
// the same on all ranks.
template <class Expected, class Action>
std::string common_message(Action&& action) {
  std::string message = thrown_by<Expected>(action).message();
  CHECK(is_same_as_on_first(message));
  return message;
}

// A world whose collectives may stay unfinished.
MPI_Comm spare_world() {
  MPI_Comm spare = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &spare);
  return spare;
}

}  // namespace

TEST_CASE("a rank with another mesh: all throw the same error, the outlier first") {
  const std::string message = common_message<MismatchError>([] {
    Mesh{MPI_COMM_WORLD, rank() == last() ? "dp=auto" : "tp=auto"};
  });
  CHECK_CONTAINS(message, "mesh:\n    rank " + std::to_string(last()) + ": dp=auto");
  CHECK_CONTAINS(message, size() == 2
                              ? "\n    rank 0: tp=auto"
                              : "\n    ranks 0-" + std::to_string(last() - 1) + ": tp=auto");
}

TEST_CASE("differences that do not affect the layout are found too") {
  MeshOptions options;
  if (rank() == last()) options.deadline = Deadline::Duration{5};
  CHECK_CONTAINS(common_message<MismatchError>([&] {
                   Mesh{MPI_COMM_WORLD, "tp=auto", options};
                 }),
                 "option deadline:");
  CHECK_NOTHROW(
      (Mesh{MPI_COMM_WORLD,
            rank() == last() ? "tp=auto" : " tp = auto "}));  // the same mesh, written differently
}

TEST_CASE("a rank that cannot parse its mesh enters with its failure") {
  const std::string message = common_message<MismatchError>([] {
    Mesh{MPI_COMM_WORLD, rank() == last() ? "tp=auto,zz" : "tp=auto"};
  });
  CHECK_CONTAINS(message,
                 "rank " + std::to_string(last()) + " failed: mesh 'tp=auto,zz', position 10");
}

TEST_CASE("a rank that comes late is waited for") {
  if (rank() == last()) std::this_thread::sleep_for(std::chrono::milliseconds{400});
  MeshOptions options;
  options.timeout = Deadline::Duration{30};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  CHECK(mesh["tp"].size() == size());
  mesh.close();
}

TEST_CASE("a rank that never comes is named, with its coordinates") {
  const MPI_Comm world = spare_world();
  rankmesh_test::ScopedPatience patience;
  patience.wait_for_answers(0.3);
  wait_for_all();
  if (rank() != last()) {
    const auto error = thrown_by<TimeoutError>([&] {
      (void)Mesh{world, "tp=auto", short_timeout()};
    });
    CHECK(error.missing() == std::vector<Rank>{last()});
    const std::string name = std::to_string(last());
    CHECK_CONTAINS(error.message(), "rank " + name + " (tp=" + name + ") is silent");
    // A rank that comes late learns that another one has given up.
    if (!has_part(error.message(), " gave up "))
      CHECK_CONTAINS(error.message(), fmt::format("within {} s", short_timeout().timeout->count()));
  }
  wait_for_all();
}

TEST_CASE("a member of a dynamic group that never comes is named; a later attempt works") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", short_timeout()};
  const std::vector<Rank> pair{0, last()};
  if (rank() == 0) {
    const auto error = thrown_by<TimeoutError>([&] { (void)mesh.new_group(pair); });
    CHECK(error.missing() == std::vector<Rank>{last()});
    CHECK_CONTAINS(error.message(), "new_group group(0");
  }
  wait_for_all();
  // Now the other member comes alone. Rank 0 has withdrawn, so this one waits in vain too.
  if (rank() == last()) {
    const Watchdog watchdog{20, "new_group counts on rank 0, which has withdrawn from the group"};
    try {
      (void)mesh.new_group(pair);
      FAIL("rank 0 has withdrawn from the group, and new_group returned");
    } catch (const TimeoutError& error) {
      CHECK(error.missing() == std::vector<Rank>{0});
    }
  }
  // Together the same list still works.
  wait_for_all();
  if (rank() == 0 || rank() == last()) {
    const auto group = mesh.new_group(pair);
    CHECK(group->size() == 2);
    group->barrier();
  }
  wait_for_all();
}

TEST_CASE("a member that does not close a dynamic group is named by the others") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", short_timeout()};
  std::vector<Rank> everyone;
  for (int r = 0; r < size(); ++r) everyone.emplace_back(r);
  const auto group = mesh.new_group(everyone, "everyone");
  wait_for_all();
  if (rank() != last()) {
    try {
      mesh.close(*group);
      FAIL("rank " << last() << " did not close the group, and close() returned");
    } catch (const TimeoutError& error) {
      CHECK(error.missing() == std::vector<Rank>{last()});
      CHECK_CONTAINS(error.message(), "everyone");
      CHECK_CONTAINS(error.message(), "close");
    }
    CHECK_THROWS_WITH_AS((void)group->barrier_async(), doctest::Contains("the group is broken"),
                         ClosedError);
  }
  wait_for_all();
}

TEST_CASE("a rank that comes after the others have given up does not hang; a later attempt works") {
  const MPI_Comm world = spare_world();
  if (rank() == last()) wait_for_all();  // until the others have given up
  CHECK_THROWS_AS((Mesh{world, "tp=auto", short_timeout(Deadline::Duration{0.5})}), TimeoutError);
  if (rank() != last()) wait_for_all();
  wait_for_all();
  // What the ranks have told each other in the first attempt may still be on its way.
  Mesh mesh{world, "tp=auto"};
  CHECK(mesh["tp"].size() == size());
  mesh.close();
}

TEST_CASE("a dynamic group of the same ranks as a name is not mistaken for it") {
  MeshOptions options;
  options.deadline = Deadline::Duration{5};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<Rank> everyone;
  for (int r = 0; r < size(); ++r) everyone.emplace_back(r);
  const auto twin = mesh.new_group(everyone, "twin");
  static std::vector<std::vector<int>> leaked;
  auto& value = leaked.emplace_back(1, 1);
  auto& group = rank() == last() ? *twin : mesh["tp"];
  // On one node it is a MismatchError, because the calls form a circle.
  const std::string message = thrown_by<Error>([&] { group.all_reduce(value); }).message();
  CHECK_LACKS(message, "all of its ranks wait in it");
  const bool is_heard = has_part(message, rank() == last() ? "tp.all_reduce" : "twin.all_reduce");
  int heard = is_heard ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &heard, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(heard >= 1);
}

TEST_CASE("one invalid list in a batch: no group is created on any rank") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const std::vector<std::vector<Rank>> batch{{0, last()}, {rank(), size()}};
  CHECK_THROWS_AS((void)mesh.new_groups(batch), UsageError);
  mesh.close();
}

TEST_CASE(
    "collectives of two names in another order: the error names the ranks and their operations") {
  SKIP_UNLESS(size() == 4, "needs 4 ranks");
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=2"};
  std::vector<int> value{1};
  // 0 begins with tp (0,1), 1 with dp (1,3), 3 with tp (2,3), 2 with dp (0,2): a circle.
  auto& first = mesh[rank() == 0 || rank() == 3 ? "tp" : "dp"];
  const std::string message = common_message<MismatchError>([&] { first.all_reduce(value); });
  for (const char* name : {"tp", "dp"})
    CHECK_CONTAINS(message, std::string{name} + ".all_reduce(1 x int32, sum, in place), call 1, ");
  CHECK_THROWS_WITH_AS(first.barrier(), doctest::Contains("broken"), ClosedError);
  wait_for_all();
}

TEST_CASE("a collective that one member leaves out ends for all others with one message") {
  MeshOptions options;
  options.deadline = short_deadline();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<double> values(1000, 1.0);
  wait_for_all();
  if (rank() != last()) {
    const auto error = thrown_by<TimeoutError>([&] { mesh["tp"].all_reduce(values); });
    CHECK(error.missing() == std::vector<Rank>{last()});
    CHECK_CONTAINS(error.message(), "tp.all_reduce");
    CHECK_THROWS_AS(mesh["tp"].all_reduce(values), ClosedError);
  }
  wait_for_all();
  // MPI may use the memory of the operation until the process ends.
  static std::vector<std::vector<double>> leaked;
  leaked.push_back(std::move(values));
}

TEST_CASE("a rank that stays away from a step of expert dispatch is named, whichever step it is") {
  MeshOptions options;
  options.deadline = short_deadline();
  for (const std::string_view missed : {"route", "dispatch", "combine"}) {
    CAPTURE(missed);
    Mesh mesh{MPI_COMM_WORLD, "ep=auto", options};
    // Each rank sends a token to each rank, so every rank waits for all others.
    std::vector<std::int32_t> ids(static_cast<std::size_t>(size()));
    std::iota(ids.begin(), ids.end(), 0);
    static std::deque<std::vector<float>> leaked;  // MPI may use it until the process ends
    auto& token = leaked.emplace_back(1000, 1.0F);
    auto& rows = leaked.emplace_back(ids.size() * token.size());
    auto& out = leaked.emplace_back(token.size());
    const std::vector<float> weights(ids.size(), 1.0F);
    exchange::ExpertDispatcher experts{mesh["ep"], exchange::ExpertMap::contiguous(size(), size())};
    const auto stays_away = [&](std::string_view step) {
      return step == missed && rank() == last();
    };
    wait_for_all();
    try {
      if (!stays_away("route")) {
        const auto route = experts.route(ids, size());
        if (!stays_away("dispatch")) experts.dispatch(route, token, rows);
        if (missed == "combine" && rank() != last()) experts.combine(route, rows, weights, out);
      }
      CHECK(rank() == last());
    } catch (const TimeoutError& error) {
      CHECK(error.missing() == std::vector<Rank>{last()});
      CHECK_CONTAINS(error.message(),
                     missed == "route"
                         ? std::string{"ep.ExpertDispatcher: all_to_all"}
                         : fmt::format("ep.ExpertDispatcher::{}: all_to_all", missed));
      CHECK_THROWS_AS((void)experts.route(ids, size()), ClosedError);
    }
    wait_for_all();
  }
}

TEST_CASE("a message that is not sent, a broadcast whose root is missing: the deadline ends both") {
  MeshOptions options;
  options.deadline = short_deadline();
  static std::vector<std::vector<double>> leaked;  // MPI may use it until the process ends
  for (const bool is_message : {true, false}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& values = leaked.emplace_back(100'000, 1.0);
    const auto root = static_cast<RankInGroup>(last());
    if (rank() == 0) {
      const auto error = thrown_by<TimeoutError>([&] {
        if (is_message)
          mesh["tp"].recv(values, root);
        else
          mesh["tp"].broadcast(values, root);
      });
      CHECK_CONTAINS(error.message(), is_message ? "tp.recv" : "tp.broadcast");
    }
    wait_for_all();
  }
}

TEST_CASE("an exception on one rank does not block it, and the others get an error") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  if (rank() == last()) {
    try {
      const Mesh inner = std::move(mesh);
      throw std::runtime_error{"user code fails"};
    } catch (const std::runtime_error&) {
    }
  } else {
    CHECK_THROWS_WITH_AS(mesh.close(), doctest::Contains("close of the mesh cannot end; rank "),
                         TimeoutError);
    CHECK(mesh.is_closed());
    CHECK_THROWS_AS(mesh["tp"].barrier(), ClosedError);
  }
  wait_for_all();
}

TEST_CASE("close() does not wait for a rank that has destroyed the mesh without close()") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.timeout = Deadline::Duration{30};
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "tp=auto", options};
  if (rank() == last()) {
    mesh.reset();
  } else {
    const std::string message = thrown_by<PeerError>([&] { mesh->close(); }).message();
    CHECK_CONTAINS(message,
                   fmt::format("rank {0} (tp={0}) has destroyed the mesh without close()", last()));
    CHECK(mesh->is_closed());
  }
  wait_for_all();
}

TEST_CASE("the timeout of a family ends the waits for its operations") {
  MeshOptions options;
  options.names["tp"].timeout = 1;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  static std::vector<std::vector<int>> leaked;  // MPI may use it until the process ends
  auto& value = leaked.emplace_back(1, 1);
  wait_for_all();
  if (rank() != last()) {
    Work work = mesh["tp"].all_reduce_async(value);
    const auto error = thrown_by<TimeoutError>([&] { work.wait(); });
    // A rank that comes late learns that another one has given up.
    if (!has_part(error.message(), " gave up ")) CHECK_CONTAINS(error.message(), "within 1 s");
  }
  wait_for_all();
}

TEST_CASE("duplicates have the timeout of their family") {
  MeshOptions options;
  options.timeout = Deadline::Duration{10};
  options.names["tp"].timeout = 1;
  options.names["tp"].duplicates = {"side"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  static std::vector<std::vector<int>> used_by_mpi;  // MPI may use it until the process ends
  auto& value = used_by_mpi.emplace_back(1, 1);
  wait_for_all();
  if (rank() != last()) {
    Work work = mesh.duplicate("tp", "side").all_reduce_async(value);
    const auto error = thrown_by<TimeoutError>([&] { work.wait(); });
    if (!has_part(error.message(), " gave up ")) CHECK_CONTAINS(error.message(), "within 1 s");
  }
  wait_for_all();
}

TEST_CASE(
    "an asynchronous operation that one member does not issue: the others get an error, and the "
    "group is broken") {
  MeshOptions options;
  options.names["tp"].timeout = size() > 2 ? 2 : 1;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  static std::vector<std::vector<int>> leaked;  // MPI may use it until the process ends
  auto& value = leaked.emplace_back(1, 1);
  wait_for_all();
  if (rank() != last()) {
    Work work = tp.all_reduce_async(value);
    const auto error = thrown_by<TimeoutError>([&] { work.wait(); });
    CHECK(error.missing() == std::vector<Rank>{last()});
    CHECK_CONTAINS(error.message(), "tp.all_reduce(1 x int32, sum, in place), call 1 ");
    CHECK_THROWS_AS((void)work.test(), ClosedError);
    CHECK_THROWS_AS(tp.barrier(), ClosedError);
  }
  wait_for_all();
}
