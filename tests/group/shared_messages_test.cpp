// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members through shared memory.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/processes.hpp"
#include "transport/shm/ring.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// With the option `check`, messages go over MPI. Without rules, the default ones hold.
MeshOptions unchecked(const char* routes = "") {
  MeshOptions options;
  options.check = false;
  options.routes = routes;
  return options;
}

// The rings carry messages up to this many elements of 4 bytes; MPI carries the elements of larger
// ones.
constexpr std::size_t most_in_ring = shm::Ring::largest / 4;

std::vector<std::int32_t> numbers(std::size_t count, std::int64_t from, int what) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), static_cast<std::int32_t>(from * 100'000 + what * 7));
  return values;
}

}  // namespace

TEST_CASE("messages inside a node use shared memory; all of them use the same transport") {
  NEEDS_RANKS(2);
  const Operation operations[] = {Operation::send, Operation::recv, Operation::send_recv};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  const bool is_one_node = mesh.placement().node_count() == 1;
  Mesh by_mpi{MPI_COMM_WORLD, "tp=auto", unchecked("tp.recv:int=shm; tp.send=mpi")};
  MeshOptions checks = unchecked();
  checks.check = true;
  Mesh checked{MPI_COMM_WORLD, "tp=auto", checks};
  for (const Operation operation : operations) {
    CAPTURE(to_string(operation));
    CHECK(mesh["tp"].explain(operation, 8).transport ==
          (is_one_node && size() <= 16 ? "shm" : "mpi"));
    CHECK(by_mpi["tp"].explain(operation, 8).transport == "mpi");
    const RouteExplanation of_checked = checked["tp"].explain(operation, 8);
    CHECK(of_checked.transport == "mpi");
    if (is_one_node) CHECK_CONTAINS(of_checked.to_string(), "option check compares messages");
  }
  // The ends use different operations.
  const std::vector<std::int32_t> in = numbers(10, rank(), 0);
  std::vector<std::int32_t> out(10);
  Work work = by_mpi["tp"].send_async(in, next);
  by_mpi["tp"].recv(out, prev);
  work.wait();
  CHECK(out == numbers(10, (rank() + size() - 1) % size(), 0));
}

TEST_CASE("messages of every size arrive, also to the member itself, and several at once") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  const std::int64_t self = tp.rank_in_group().value();
  const std::int64_t before = (self + tp.size() - 1) % tp.size();
  for (const std::size_t count : {0, 1, 24, 25, 1024, 5000, 8192, 8193, 70'000, 400'000}) {
    CAPTURE(count);
    const auto in = numbers(count, self, 1), back = numbers(count, self, 2);
    std::vector<std::int32_t> out(count), from_next(count), own(count);
    tp.send_recv(in, out, next, prev, 3);
    CHECK(out == numbers(count, before, 1));
    std::ranges::fill(out, 0);
    Work receive = tp.recv_async(out, prev, 4);
    Work receive_back = tp.recv_async(from_next, next, 5);
    Work to_self = tp.send_recv_async(in, own, self, self, 6);
    Work send_back = tp.send_async(back, prev, 5);
    tp.send(in, next, 4);
    receive_back.wait();
    receive.wait();
    send_back.wait();
    to_self.wait();
    CHECK(out == numbers(count, before, 1));
    CHECK(from_next == numbers(count, (self + 1) % tp.size(), 2));
    CHECK(own == in);
  }
  mesh.close();
}

TEST_CASE("messages with one tag keep their order, and other tags may be received first") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  const std::int64_t before = (tp.rank_in_group().value() + tp.size() - 1) % tp.size();
  const std::int64_t self = tp.rank_in_group().value();
  std::mt19937 same{5};
  for (int round = 0; round < 3; ++round) {
    constexpr int count = 60;
    const auto length = [&](int i) {
      return std::size_t(i % 7 == 0 ? 12000 : i % 5 == 0 ? 3000 : i % 3);
    };
    std::vector<Work> works;
    for (int i = 0; i < count; ++i)
      works.push_back(tp.send_async(numbers(length(i), self, i), next, i % 4));
    // Each tag in its order, the tags in any order.
    for (const int tag : {3, 1, 0, 2})
      for (int i = tag; i < count; i += 4) {
        std::vector<std::int32_t> values(length(i));
        if (same() % 2 == 0)
          tp.recv(values, prev, tag);
        else
          tp.recv_async(values, prev, tag).wait();
        CHECK(values == numbers(length(i), before, i));
      }
    for (Work& work : works) work.wait();
  }
}

TEST_CASE("another length or type is an error of the receive, and the group stays usable") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  SKIP_UNLESS(tp.explain(Operation::send, 8).transport == "shm", "needs messages in shared memory");
  for (const std::size_t count : {std::size_t{3}, std::size_t{50'000}}) {
    CAPTURE(count);
    const std::vector<float> in(count, 1.5F);
    std::vector<float> longer(count + 1, 9.0F), shorter(count - 1);
    std::vector<std::int32_t> other(count, 9);
    std::vector<double> wide(count / 2 + 1);
    const auto received = "received " + std::to_string(count) + " x float32, but ";
    Work works[] = {tp.send_async(in, next, 1), tp.send_async(in, next, 1),
                    tp.send_async(in, next, 1), tp.send_async(in, next, 1)};
    const auto too_short = thrown_by<UsageError>([&] { tp.recv(longer, prev, 1); });
    CHECK_CONTAINS(too_short.message(), "tp.recv from rank ");
    CHECK_CONTAINS(too_short.message(), received + std::to_string(count + 1) + " x float32");
    const auto too_long = thrown_by<UsageError>([&] { tp.recv(shorter, prev, 1); });
    CHECK_CONTAINS(too_long.message(), received + std::to_string(count - 1) + " x float32");
    const auto wrong_type = thrown_by<UsageError>([&] { tp.recv_async(other, prev, 1).wait(); });
    CHECK_CONTAINS(wrong_type.message(), "received " + std::to_string(count) + " x float32, but " +
                                             std::to_string(count) + " x int32 were expected");
    const auto doubles = thrown_by<UsageError>([&] { tp.recv_async(wide, prev, 1).wait(); });
    CHECK_CONTAINS(doubles.message(), received + std::to_string(wide.size()) + " x float64");
    for (Work& work : works) work.wait();
    if (count <= most_in_ring) {  // MPI has written to the buffer already
      CHECK(longer == std::vector<float>(count + 1, 9.0F));
      CHECK(other == std::vector<std::int32_t>(count, 9));
    }
    std::vector<float> right(count);
    tp.send_recv(in, right, next, prev, 1);
    CHECK(right == in);
  }
  // A mistake in a send_recv has no influence on the other direction.
  const std::vector<float> in(most_in_ring + 5, 1.5F);
  std::vector<float> out(most_in_ring + 6);
  CHECK_THROWS_AS(tp.send_recv(in, out, next, prev, 1), UsageError);
  CHECK(tp.all_reduce(1) == size());
  mesh.close();
}

TEST_CASE("if one end gives a message to the ring and the other to MPI, both get the same error") {
  NEEDS_RANKS(2);
  for (const bool is_async : {false, true})
    for (const bool sends_large : {false, true}) {
      CAPTURE(is_async);
      CAPTURE(sends_large);
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
      GroupCoordinator& tp = mesh["tp"];
      SKIP_UNLESS(tp.explain(Operation::send, 8).transport == "shm",
                  "needs messages in shared memory");
      const std::size_t sizes[] = {most_in_ring, most_in_ring + 1};
      const std::vector<float> in(sizes[sends_large ? 1 : 0], 1.5F);
      std::vector<float> out(sizes[sends_large ? 0 : 1]), more(most_in_ring + 1);
      const std::string expected =
          "a message of 'tp' with tag 7: rank 1 (tp=1) sent " + std::to_string(in.size()) +
          " x float32, but rank 0 (tp=0) expected " + std::to_string(out.size()) + " x float32";
      if (rank() == 1) {
        Work work = tp.send_async(in, 0, 7);
        const auto error = thrown_by<MismatchError>([&] {
          work.wait();  // a small one ends before the other member looks at it
          tp.recv(more, 0, 8);
        });
        CHECK_CONTAINS(error.message(), expected);
      } else if (rank() == 0) {
        const auto error = thrown_by<MismatchError>([&] {
          if (is_async)
            tp.recv_async(out, 1, 7).wait();
          else
            tp.recv(out, 1, 7);
        });
        CHECK_CONTAINS(error.message(), expected);
        CHECK_THROWS_AS(tp.send(in, 1, 7), ClosedError);
      }
      wait_for_all();
    }
}

TEST_CASE("receives can be cancelled and messages probed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  const std::int64_t self = tp.rank_in_group().value();
  const std::int64_t before = (self + tp.size() - 1) % tp.size();
  std::vector<std::int32_t> never(50'000);
  for (const std::size_t count : {std::size_t{5}, std::size_t{50'000}}) {
    CAPTURE(count);
    std::vector<std::int32_t> values(count);
    const std::span unused{never.data(), count};
    Work work = tp.recv_async(unused, prev, 8);
    CHECK(!tp.probe(prev, 8));
    CHECK(work.cancel());
    tp.barrier();
    Work sent = tp.send_async(numbers(count, self, 1), next, 8);
    while (!tp.probe(prev, 8)) {
    }
    CHECK(tp.probe(prev, 8) == 4 * static_cast<std::int64_t>(count));
    CHECK(!tp.probe(prev, 7));
    CHECK(tp.try_recv(values, prev, 8));
    CHECK(values == numbers(count, before, 1));
    sent.wait();
    tp.barrier();
  }
  CHECK(never == std::vector<std::int32_t>(never.size()));
  // close() cancels receives to which no message comes.
  Work open = tp.recv_async(std::span{never.data(), 5}, prev, 9);
  Work large = tp.recv_async(never, prev, 9);
  mesh.close();
  CHECK_THROWS_AS(open.wait(), ClosedError);
  CHECK_THROWS_AS(large.wait(), ClosedError);
}

TEST_CASE("many messages to a member in a collective over MPI arrive, also of another mesh") {
  NEEDS_MULTIPLE_OF(2);
  // On several hosts, `tp` is inside each of them and `all` spans them.
  const std::string text = "dp=" + std::to_string(size() / 2) + ",tp=2 ; all=dp*tp";
  const char* routes = "*.barrier=mpi; *.all_reduce=mpi";
  Mesh mesh{MPI_COMM_WORLD, text, unchecked(routes)};
  Mesh other{MPI_COMM_WORLD, text, unchecked(routes)};
  GroupCoordinator& tp = mesh["tp"];
  constexpr int count = 100;  // more than there is space for
  for (Mesh* of_collective : {&mesh, &other}) {
    GroupCoordinator& all = (*of_collective)["all"];
    if (tp.rank_in_group() == 0) {
      for (int i = 0; i < count; ++i) tp.send(numbers(500, 1, i), 1);
      all.barrier();
    } else {
      std::vector<std::vector<std::int32_t>> out(count, std::vector<std::int32_t>(500));
      std::vector<Work> works;
      for (auto& one : out) works.push_back(tp.recv_async(one, 0));
      all.barrier();
      for (Work& work : works) work.wait();
      for (int i = 0; i < count; ++i) CHECK(out[static_cast<std::size_t>(i)] == numbers(500, 1, i));
    }
  }
}

TEST_CASE(
    "receives that are under way do not hold up collectives over MPI, nor these the receives") {
  NEEDS_MULTIPLE_OF(2);
  // On several hosts, `tp` is inside each of them and `all` spans them.
  Mesh mesh{MPI_COMM_WORLD, "dp=" + std::to_string(size() / 2) + ",tp=2 ; all=dp*tp",
            unchecked("*.barrier=mpi; *.all_reduce=mpi")};
  GroupCoordinator& tp = mesh["tp"];
  GroupCoordinator& all = mesh["all"];
  const bool sends = tp.rank_in_group() == 0;
  for (const std::size_t count : {std::size_t{10}, std::size_t{300'000}}) {
    CAPTURE(count);
    const auto in = numbers(count, 1, 1);
    std::vector<std::int32_t> out(count);
    for (const bool sends_first : {true, false}) {
      CAPTURE(sends_first);
      std::ranges::fill(out, 0);
      if (sends) {
        if (sends_first) tp.send(in, 1);
        all.barrier();
        if (!sends_first) tp.send(in, 1);
      } else {
        Work work = tp.recv_async(out, 0);
        all.barrier();
        work.wait();
        CHECK(out == in);
      }
      CHECK(all.all_reduce(1) == size());
    }
  }
}

TEST_CASE("a message that does not come ends the receive at the deadline, and names the member") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() <= 3, "needs at most 3 ranks, because it waits for a deadline");
  for (const std::size_t count : {std::size_t{10}, std::size_t{50'000}}) {
    CAPTURE(count);
    MeshOptions options = unchecked();
    options.deadline = Deadline::Duration{1};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    SKIP_UNLESS(mesh.placement().node_count() == 1, "needs one node, to let a rank continue");
    int stopped = getpid();
    MPI_Bcast(&stopped, 1, MPI_INT, last(), MPI_COMM_WORLD);
    std::vector<float> values(count, 1.0F);
    wait_for_all();
    if (rank() == last()) {
      std::raise(SIGSTOP);
      // It learns that the other member has given up.
      CHECK_THROWS_AS(mesh["tp"].recv(values, 0), TimeoutError);
    } else if (rank() == 0) {
      CHECK(rankmesh_test::is_stopped_soon(stopped));
      const auto error =
          thrown_by<TimeoutError>([&] { mesh["tp"].recv(values, RankInGroup{last()}); });
      CHECK_CONTAINS(error.message(), "tp.recv from rank " + std::to_string(last()));
      CHECK(error.missing() == std::vector<Rank>{last()});
      CHECK_THROWS_AS(mesh["tp"].send(values, RankInGroup{last()}), ClosedError);
      kill(stopped, SIGCONT);
    }
    wait_for_all();
  }
}

TEST_CASE("messages whose sender gives up are not received, and the receiver learns why") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  SKIP_UNLESS(tp.explain(Operation::send, 8).transport == "shm", "needs messages in shared memory");
  std::vector<float> values(most_in_ring, 1.0F);
  wait_for_all();
  if (rank() == last()) {
    std::vector<Work> works;
    for (int i = 0; i < 40; ++i)  // more than there is space for
      works.push_back(tp.send_async(std::span{std::as_const(values)}, 0));
    CHECK_THROWS_AS(works.back().wait(Deadline::Duration{0.2}), TimeoutError);
    std::ranges::fill(values, 2.0F);
  }
  wait_for_all();
  if (rank() == 0) {
    CHECK_THROWS_AS(tp.recv(values, RankInGroup{last()}), TimeoutError);
    CHECK(values.back() == 1.0F);
  }
  wait_for_all();
}

TEST_CASE("a send for which there is no space ends at the deadline, and the other member knows") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() <= 3, "needs at most 3 ranks, because it waits for a deadline");
  MeshOptions options = unchecked();
  options.deadline = Deadline::Duration{1};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  SKIP_UNLESS(mesh["tp"].explain(Operation::send, 8).transport == "shm",
              "needs messages in shared memory");
  const std::vector<float> values(most_in_ring, 1.0F);
  wait_for_all();
  if (rank() == 0) {
    const auto error = thrown_by<TimeoutError>([&] {
      for (int i = 0; i < 40; ++i) mesh["tp"].send(values, 1);
    });
    CHECK_CONTAINS(error.message(), "tp.send to rank 1");
  }
  wait_for_all();
  if (rank() == 1) {
    std::vector<float> out(values.size());
    const auto error = thrown_by<TimeoutError>([&] { mesh["tp"].recv(out, 0); });
    CHECK_CONTAINS(error.message(), "tp.send to rank 1");
  }
  wait_for_all();
}
