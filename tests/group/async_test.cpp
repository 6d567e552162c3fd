// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous operations: the same results as the blocking forms, in any order of completion.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/iterations.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

std::vector<std::int64_t> values(std::int64_t seed, std::int64_t n) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < n; ++i) result.push_back((seed * 131 + i * 17) % 1009);
  return result;
}

std::string layout() {
  return size() % 2 == 0 ? "dp=2,tp=auto ; all=dp*tp" : "dp=1,tp=auto ; all=dp*tp";
}

}  // namespace

TEST_CASE("every asynchronous operation gives what the blocking one gives") {
  Mesh mesh{MPI_COMM_WORLD, layout()};
  for (const std::string name : {"dp", "tp", "all"}) {
    auto& group = mesh[name];
    const std::int64_t n = group.size();
    const auto un = static_cast<std::size_t>(n);
    CAPTURE(name);
    for (const std::int64_t count : {0, 1, 7}) {
      const auto uc = static_cast<std::size_t>(count);
      const auto mine = values(rank(), count);
      const auto wide = values(rank(), count * n);
      std::vector<std::int64_t> expected(uc);
      std::vector<std::int64_t> expected_wide(uc * un);
      std::vector<std::int64_t> got(uc);
      std::vector<std::int64_t> got_wide(uc * un);
      const auto same = [&](Work work, const char* operation) {
        CAPTURE(operation);
        work.wait();
        CHECK(work.test());
        CHECK(got == expected);
        CHECK(got_wide == expected_wide);
      };

      group.all_reduce(mine, expected, ReduceOp::max);
      same(group.all_reduce_async(mine, got, ReduceOp::max), "all_reduce");
      got = mine;
      expected = mine;
      group.all_reduce(expected);
      same(group.all_reduce_async(got), "all_reduce in place");
      got = expected = mine;
      group.broadcast(expected, n - 1);
      same(group.broadcast_async(got, n - 1), "broadcast");
      if (group.is_first()) group.reduce(mine, expected, 0);
      if (!group.is_first()) group.reduce(mine, expected, 0);
      same(group.reduce_async(mine, got, 0), "reduce");
      group.all_gather(mine, expected_wide);
      same(group.all_gather_async(mine, got_wide), "all_gather");
      group.reduce_scatter(wide, expected);
      same(group.reduce_scatter_async(wide, got), "reduce_scatter");
      group.gather(mine, expected_wide, n / 2);
      same(group.gather_async(mine, got_wide, n / 2), "gather");
      group.scatter(wide, expected, n / 2);
      same(group.scatter_async(wide, got, n / 2), "scatter");
      group.all_to_all(wide, expected_wide);
      same(group.all_to_all_async(wide, got_wide), "all_to_all");
      group.send_recv(mine, expected, next, prev);
      same(group.send_recv_async(mine, got, next, prev), "send_recv");
      group.barrier_async().wait();
      if (n > 1) {
        std::fill(got.begin(), got.end(), -1);
        Work from = group.recv_async(got, prev, 5);
        Work to = group.send_async(mine, next, 5);
        from.wait();
        to.wait();
        CHECK(got == values(group.prev_rank().value(), count));
      }
    }
  }
  mesh.close();
}

TEST_CASE("hundreds of operations on several names, completed in any order") {
  Mesh mesh{MPI_COMM_WORLD, layout()};
  std::mt19937 same{11U + static_cast<unsigned>(
                              size())};  // chooses the operations to issue, the same on every rank
  std::mt19937 own{static_cast<unsigned>(
      100 + rank())};  // chooses the operations to wait for, different on every rank
  const char* names[] = {"dp", "tp", "all"};
  struct Operation {
    Work work;
    std::vector<std::int64_t> in, out, expected;
  };
  std::deque<Operation> flying;
  const int operations = rankmesh_test::iterations(800, size());
  const auto finish = [&](std::size_t i) {
    Operation& operation = flying[i];
    switch (own() % 3) {
      case 0:
        operation.work.wait();
        break;
      case 1:
        operation.work.wait(Deadline::Duration{60});
        break;
      default:
        while (!operation.work.test()) mesh.progress();
    }
    CHECK(operation.out == operation.expected);
    flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int i = 0; i < operations; ++i) {
    auto& group = mesh[names[same() % 3]];
    const auto count = static_cast<std::int64_t>(same() % 50);
    Operation& operation = flying.emplace_back();
    operation.in = values(rank() + i, count);
    if (same() % 2 == 0) {
      operation.out.resize(operation.in.size());
      operation.expected.assign(operation.in.size(), 0);
      for (const Rank member : group.ranks()) {
        const auto theirs = values(member.value() + i, count);
        for (std::size_t k = 0; k < theirs.size(); ++k) operation.expected[k] += theirs[k];
      }
      operation.work = group.all_reduce_async(operation.in, operation.out);
    } else {
      operation.out.resize(operation.in.size() * static_cast<std::size_t>(group.size()));
      for (const Rank member : group.ranks())
        std::ranges::copy(values(member.value() + i, count),
                          std::back_inserter(operation.expected));
      operation.work = group.all_gather_async(operation.in, operation.out);
    }
    if (own() % 5 == 0) mesh.progress();
    while (flying.size() > 8) finish(own() % flying.size());
  }
  while (!flying.empty()) finish(own() % flying.size());
  mesh.close();
}

TEST_CASE("a container that is moved in is kept, and given back") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::vector<double> gradients(3, 1.0);
  auto work = tp.all_reduce_async(std::move(gradients));
  CHECK(work.take() == std::vector<double>(3, static_cast<double>(size())));
  auto gathered = tp.all_gather_async(std::vector<int>{rank()},
                                      std::vector<int>(static_cast<std::size_t>(size())));
  const auto all = gathered.take();
  for (int r = 0; r < size(); ++r) CHECK(all[static_cast<std::size_t>(r)] == r);
  std::vector<int> out(1);
  Work kept_in = tp.all_reduce_async(std::vector<int>{1}, out);
  kept_in.wait();
  CHECK(out[0] == size());
  mesh.close();
}

TEST_CASE("buffers that were moved in are freed when the operation ends, not with its Work") {
  for (const char* transport : {"mpi", "shm"}) {
    CAPTURE(transport);
    MeshOptions options;
    options.routes = std::string{"*.*:host="} + transport;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto buffer = std::make_shared<std::vector<int>>(3, 1);
    const std::weak_ptr<std::vector<int>> watched = buffer;
    const Call call{.operation = Operation::all_reduce,
                    .in = buffer_of(*buffer).as_input(),
                    .out = buffer_of(*buffer)};
    Work work = detail::GroupAccess::start(mesh["tp"], call, std::move(buffer));
    CHECK(!watched.expired());
    work.wait();
    CHECK(watched.expired());
    mesh.close();
  }
}

TEST_CASE("the operation of a destroyed Work continues, and close() waits for it") {
  std::vector<int> value{1};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  (void)mesh["tp"].all_reduce_async(value);
  (void)mesh["tp"].all_reduce_async(std::vector<int>{1, 2, 3});
  mesh.close();
  CHECK(value[0] == size());
  Work nothing;
  CHECK(nothing.test());
  nothing.wait();
}

TEST_CASE("close() throws the failure of an operation whose Work is gone, whenever it ended") {
  NEEDS_RANKS(2);
  for (const bool ends_before : {true, false}) {
    MeshOptions options;
    options.check = false;  // which would find the lengths itself
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    std::vector<int> four(4);
    if (rank() == 1) (void)tp.recv_async(four, RankInGroup{0});
    if (ends_before) tp.barrier();
    if (rank() == 0) tp.send(std::vector<int>(8), RankInGroup{1});
    if (ends_before) tp.barrier();  // its wait, or its end, finds the failure
    for (int i = 0; ends_before && i < 1000; ++i) mesh.progress();
    if (ends_before || rank() == 1) {
      CHECK_THROWS_AS(mesh.close(), Error);
    } else {
      try {
        mesh.close();
      } catch (const Error&) {  // if the receiver has found its failure before all had come
      }
    }
  }
}

TEST_CASE("contracts are checked before an operation is started") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::vector<int> two(2), three(3);
  CHECK_THROWS_AS((void)mesh["tp"].all_reduce_async(two, three), UsageError);
  mesh.close();
  CHECK_THROWS_AS((void)mesh["tp"].all_reduce_async(two), ClosedError);
}

TEST_CASE("closing a dynamic group finishes its operations") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::vector<Rank> everyone;
  for (int r = 0; r < size(); ++r) everyone.emplace_back(r);
  const auto group = mesh.new_group(everyone, "everyone");
  // Large, so that it is not complete when close() begins.
  std::vector<std::int64_t> sums(1 << 18, rank() + 1);
  std::vector<std::int64_t> gathered(static_cast<std::size_t>(size()) << 12);
  const std::vector<std::int64_t> mine(1 << 12, rank());
  Work sum = group->all_reduce_async(sums);
  Work gather = group->all_gather_async(mine, gathered);
  mesh.close(*group);
  const std::int64_t expected = size() * (size() + 1) / 2;
  CHECK(std::ranges::count(sums, expected) == std::ssize(sums));
  for (int r = 0; r < size(); ++r) CHECK(std::ranges::count(gathered, r) == std::ssize(mine));
  CHECK(sum.test());
  CHECK(gather.test());
  mesh.close();
}

TEST_CASE("a wait in one mesh advances the operations of other meshes") {
  Mesh a{MPI_COMM_WORLD, "tp=auto"};
  Mesh b{MPI_COMM_WORLD, "dp=auto"};
  const auto n = static_cast<std::int64_t>(size());
  const std::int64_t sum = n * (n + 1) / 2;
  for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{100'000}}) {
    std::vector<std::int64_t> x(count, rank() + 1);
    std::vector<std::int64_t> y(count, rank() + 1);
    SUBCASE("ranks wait in different orders") {
      Work first = a["tp"].all_reduce_async(x);
      Work second = b["dp"].all_reduce_async(y);
      if (rank() == rankmesh_test::last()) std::swap(first, second);
      first.wait();
      second.wait();
    }
    SUBCASE("one rank makes a blocking call first") {
      Work work = a["tp"].all_reduce_async(x);
      if (rank() == rankmesh_test::last()) work.wait();
      b["dp"].all_reduce(y);
      work.wait();
    }
    SUBCASE("one rank makes a blocking call with a function first, which MPI carries") {
      Work work = a["tp"].all_reduce_async(x);
      if (rank() == rankmesh_test::last()) work.wait();
      b["dp"].all_reduce(y, [](std::int64_t u, std::int64_t v) { return u + v; });
      work.wait();
    }
    SUBCASE("one rank closes a mesh first") {
      Mesh other{MPI_COMM_WORLD, "tp=auto"};
      Work work = a["tp"].all_reduce_async(x);
      if (rank() == rankmesh_test::last()) work.wait();
      other.close();
      work.wait();
      y = x;
    }
    CHECK(x == std::vector<std::int64_t>(count, sum));
    CHECK(y == std::vector<std::int64_t>(count, sum));
  }
  b.close();
  a.close();
}

// The members compare these calls in shared memory, which holds 32 of them at a time.
TEST_CASE("more operations over MPI than can be compared at once, and other groups in between") {
  for (const bool blocks_in_mpi : {false, true}) {
    MeshOptions options;
    options.check = false;
    options.timeout = Deadline::Duration{20};
    options.routes = "tp.*:host=mpi";
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<Rank> everyone;
    for (std::int64_t r = 0; r < mesh.size(); ++r) everyone.emplace_back(r);
    // A group that was adopted has no shared memory, so its blocking operations block inside MPI.
    const auto other =
        blocks_in_mpi ? mesh.adopt(comm, "other") : mesh.new_group(everyone, "other");
    constexpr std::size_t count = 100;
    std::vector<std::vector<int>> sums(count, std::vector<int>(3, 1));
    std::vector<Work> works;
    if (rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds{100});
    for (auto& sum : sums) works.push_back(tp.all_reduce_async(sum));
    if (rank() == 0) other->barrier();
    for (Work& work : works) work.wait();
    if (rank() != 0) other->barrier();
    for (const auto& sum : sums) CHECK(sum == std::vector<int>(3, size()));
    mesh.close();
    MPI_Comm_free(&comm);
  }
}
