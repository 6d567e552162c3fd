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
#include "support/scoped_variable.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// With the option `check`, messages go over MPI.
MeshOptions unchecked(const char* routes = "*.send=shm") {
  MeshOptions options;
  options.check = false;
  options.routes = routes;
  return options;
}

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
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  const std::int64_t self = tp.rank_in_group().value();
  const std::int64_t before = (self + tp.size() - 1) % tp.size();
  for (const std::size_t count : {0, 1, 2, 26, 27, 1023, 1024, 1025, 5000, 70'000, 400'000}) {
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
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  const std::int64_t before = (tp.rank_in_group().value() + tp.size() - 1) % tp.size();
  const std::int64_t self = tp.rank_in_group().value();
  std::mt19937 same{5};
  for (int round = 0; round < 3; ++round) {
    constexpr int count = 60;
    const auto length = [&](int i) { return std::size_t(i % 7 == 0 ? 3000 : i % 3); };
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
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  SKIP_UNLESS(tp.explain(Operation::send, 8).transport == "shm", "needs messages in shared memory");
  for (const std::size_t count : {std::size_t{3}, std::size_t{50'000}}) {
    CAPTURE(count);
    const std::vector<float> in(count, 1.5F);
    std::vector<float> longer(count + 1, 9.0F);
    std::vector<std::int32_t> other(count, 9);
    Work work = tp.send_async(in, next, 1);
    const auto wrong_length = thrown_by<UsageError>([&] { tp.recv(longer, prev, 1); });
    CHECK_CONTAINS(wrong_length.message(), "received " + std::to_string(4 * count) +
                                               " bytes, but " + std::to_string(4 * count + 4) +
                                               " were expected");
    work.wait();
    Work again = tp.send_async(in, next, 1);
    const auto wrong_type = thrown_by<UsageError>([&] { tp.recv_async(other, prev, 1).wait(); });
    CHECK_CONTAINS(wrong_type.message(), "received " + std::to_string(count) + " x float32, but " +
                                             std::to_string(count) + " x int32 were expected");
    again.wait();
    CHECK(longer == std::vector<float>(count + 1, 9.0F));
    CHECK(other == std::vector<std::int32_t>(count, 9));
    std::vector<float> right(count);
    tp.send_recv(in, right, next, prev, 1);
    CHECK(right == in);
  }
}

TEST_CASE("receives can be cancelled and messages probed") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  const std::int64_t self = tp.rank_in_group().value();
  const std::int64_t before = (self + tp.size() - 1) % tp.size();
  std::vector<std::int32_t> never(5), values(5);
  Work work = tp.recv_async(never, prev, 8);
  CHECK(!tp.probe(prev, 8));
  CHECK(work.cancel());
  tp.barrier();
  tp.send(numbers(5, self, 1), next, 8);
  while (!tp.probe(prev, 8)) {
  }
  CHECK(tp.probe(prev, 8) == 20);
  CHECK(!tp.probe(prev, 7));
  CHECK(tp.try_recv(values, prev, 8));
  CHECK(values == numbers(5, before, 1));
  CHECK(never == std::vector<std::int32_t>(5));
  // close() cancels a receive to which no message comes.
  Work open = tp.recv_async(never, prev, 9);
  mesh.close();
  CHECK_THROWS_AS(open.wait(), ClosedError);
}

TEST_CASE(
    "receives that are under way do not hold up collectives over MPI, nor these the receives") {
  NEEDS_MULTIPLE_OF(2);
  // On several hosts, `tp` is inside each of them and `all` spans them.
  Mesh mesh{MPI_COMM_WORLD, "dp=" + std::to_string(size() / 2) + ",tp=2 ; all=dp*tp",
            unchecked("*.barrier=mpi; *.all_reduce=mpi; *.send=shm")};
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
  SKIP_UNLESS(size() <= 4, "needs at most 4 ranks, because it waits for a deadline");
  // Otherwise the receiver would read the whole message from the memory of the rank that is
  // stopped.
  const rankmesh_test::ScopedVariable in_parts{"RANKMESH_SINGLE_COPY", "off"};
  MeshOptions options = unchecked();
  options.deadline = Deadline::Duration{2};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  SKIP_UNLESS(mesh.placement().node_count() == 1, "needs one node, to let a rank continue");
  int stopped = getpid();
  MPI_Bcast(&stopped, 1, MPI_INT, last(), MPI_COMM_WORLD);
  std::vector<float> values(500'000, 1.0F);
  if (rank() == last()) {
    // Only the first parts of the message fit into the ring, and nobody has taken them yet.
    Work work = mesh["tp"].send_async(std::span{std::as_const(values)}, 0);
    wait_for_all();
    std::raise(SIGSTOP);
    CHECK_THROWS_AS(work.wait(), Error);
  } else if (rank() == 0) {
    wait_for_all();
    const auto error =
        thrown_by<TimeoutError>([&] { mesh["tp"].recv(values, RankInGroup{last()}); });
    CHECK_CONTAINS(error.message(), "tp.recv from rank " + std::to_string(last()));
    CHECK(error.missing() == std::vector<Rank>{last()});
    CHECK_THROWS_AS(mesh["tp"].send(values, RankInGroup{last()}), ClosedError);
    kill(stopped, SIGCONT);
  } else {
    wait_for_all();
  }
  wait_for_all();
}

TEST_CASE("a large message whose sender gives up is never received") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", unchecked()};
  GroupCoordinator& tp = mesh["tp"];
  SKIP_UNLESS(tp.explain(Operation::send, 8).transport == "shm", "needs messages in shared memory");
  std::vector<float> values(500'000, 1.0F);
  wait_for_all();
  if (rank() == last()) {
    Work work = tp.send_async(std::span{std::as_const(values)}, 0);
    CHECK_THROWS_AS(work.wait(Deadline::Duration{0.2}), TimeoutError);
    std::ranges::fill(values, 2.0F);
  }
  wait_for_all();
  if (rank() == 0) {
    CHECK_THROWS_AS(tp.recv(values, RankInGroup{last()}), TimeoutError);
    CHECK(values.back() == 1.0F);
  }
  wait_for_all();
}

TEST_CASE("a send for which there is no space ends at the deadline") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() <= 4, "needs at most 4 ranks, because it waits for a deadline");
  MeshOptions options = unchecked();
  options.deadline = Deadline::Duration{1.5};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  SKIP_UNLESS(mesh["tp"].explain(Operation::send, 8).transport == "shm",
              "needs messages in shared memory");
  const std::vector<float> values(500'000, 1.0F);
  wait_for_all();
  if (rank() == 0) {
    const auto error = thrown_by<TimeoutError>([&] { mesh["tp"].send(values, 1); });
    CHECK_CONTAINS(error.message(), "tp.send to rank 1");
  }
  wait_for_all();
  // The other end learns why.
  if (rank() == 1) {
    std::vector<float> out(values.size());
    CHECK_THROWS_AS(mesh["tp"].recv(out, 0), Error);
  }
  wait_for_all();
}
