// SPDX-License-Identifier: BSD-3-Clause
// Operations on one value, and operations that return their results.
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "rankmesh/exchange/message.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

std::vector<int> up_to(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

TEST_CASE("one value: in place if it is a variable, and returned") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const int n = size();
  int sum = rank() + 1;
  CHECK(tp.all_reduce(sum) == n * (n + 1) / 2);
  CHECK(sum == n * (n + 1) / 2);
  const double mine = rank();
  CHECK(tp.all_reduce(mine, ReduceOp::max) == n - 1);
  CHECK(tp.all_reduce(2.5, ReduceOp::min) == 2.5);
  CHECK(tp.all_reduce(rank() == 0, std::logical_or<>{}));
  int root = rank();
  CHECK(tp.broadcast(root, n - 1) == n - 1);
  CHECK(root == n - 1);
  CHECK(tp.broadcast(rank() == 0 ? 42 : 0, 0) == 42);
  int reduced = rank();
  CHECK(tp.reduce(reduced, 0) == (rank() == 0 ? n * (n - 1) / 2 : rank()));
  CHECK(tp.reduce(std::int64_t{1}, n - 1) == (tp.is_last() ? n : 1));

  double later = 1;
  float at_root = 2;
  Work work = tp.all_reduce_async(later);
  tp.reduce_async(at_root, 0, ReduceOp::prod).wait();
  work.wait();
  CHECK(later == n);
  std::vector<int> buffer{rank(), 1};
  tp.reduce_async(buffer, 0).wait();
  if (rank() == 0) CHECK(buffer == std::vector{n * (n - 1) / 2, n});
  mesh.close();
}

TEST_CASE("one value: messages") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
  auto& pp = mesh["pp"];
  if (!pp.is_last()) pp.send(10 * rank(), next);
  if (!pp.is_first()) CHECK(pp.recv<int>(prev) == 10 * (rank() - 1));
  struct Pair {
    double a = 0;
    std::int32_t b = 0;
  } pair{1, rank()};
  if (!pp.is_last()) pp.send(pair, next, 7);
  if (!pp.is_first()) pp.recv(pair, prev, 7);
  CHECK(pair.b == (pp.is_first() ? 0 : rank() - 1));
  double late = -1;
  if (!pp.is_first()) pp.recv_async(late, prev).wait();
  const double own = rank();
  if (!pp.is_last()) pp.send_async(own, next).wait();
  CHECK(late == rank() - 1);
  mesh.close();
}

TEST_CASE("a message is probed, and received if it has arrived") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
  auto& pp = mesh["pp"];
  std::vector<std::int32_t> values(3, rank());
  if (pp.is_first()) {
    CHECK(!pp.probe(next, 5).has_value());
    CHECK(!pp.try_recv(values, next, 5));
    pp.send(1, next, 4);  // the next member sends after this
    std::optional<std::int64_t> bytes;
    while (!bytes) bytes = pp.probe(next, 5);
    CHECK(*bytes == 12);
    CHECK(!pp.probe(next, 6).has_value());
    CHECK(pp.try_recv(values, next, 5));
    CHECK(values == std::vector<std::int32_t>(3, 1));
    double one = 0;
    while (!pp.try_recv(one, next)) mesh.progress();
    CHECK(one == 2.5);
    std::optional<exchange::Bytes> message;
    while (!message) message = exchange::try_recv_message(pp, next, 9);
    CHECK(message->size() == 5000);
    CHECK(!exchange::try_recv_message(pp, next, 9).has_value());
    CHECK_THROWS_AS((void)pp.probe(pp.size()), UsageError);
    CHECK_THROWS_AS((void)pp.probe(next, -1), UsageError);
  } else if (rank() == 1) {
    CHECK(pp.recv<int>(0, 4) == 1);
    auto work = pp.send_async(values, prev, 5);
    work.wait();
    pp.send(2.5, prev);
    exchange::send_message(pp, exchange::Bytes(5000), prev, 9);
  }
  mesh.close();
  CHECK_THROWS_AS((void)pp.probe(next), ClosedError);
}

TEST_CASE("returned results: equal blocks") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const int n = size();
  const auto un = static_cast<std::size_t>(n);
  const std::vector<int> all = tp.all_gather(rank());
  CHECK(all == up_to(n));
  CHECK(tp.all_gather(std::array{rank(), -1}).size() == 2 * un);
  const std::vector<bool> flags = tp.all_gather(rank() == 0);
  CHECK(flags.front());
  CHECK(std::accumulate(flags.begin(), flags.end(), 0) == 1);
  const auto at_root = tp.gather(rank(), n - 1);
  CHECK(at_root == (tp.is_last() ? all : std::vector<int>{}));
  const std::vector<int> two{rank(), rank()};
  CHECK(tp.gather(two, 0).size() == (rank() == 0 ? 2 * un : 0));
  CHECK(tp.scatter(rank() == 0 ? up_to(n) : std::vector<int>{}, 0) == rank());
  CHECK(tp.all_to_all(std::vector<int>(un, rank())) == all);
  CHECK(tp.reduce_scatter(up_to(n)) == std::vector{n * rank()});
  const float rows[1][2] = {{1, static_cast<float>(rank())}};
  const std::vector<float> matrix = tp.all_gather(rows);
  CHECK(matrix.back() == static_cast<float>(n - 1));
  CHECK(matrix.size() == 2 * un);
  // A container that is moved into the call comes back.
  CHECK(tp.all_reduce(std::vector{1, rank()}) == std::vector{n, n * (n - 1) / 2});
  CHECK(tp.broadcast(std::vector{rank()}, n - 1) == std::vector{n - 1});
  CHECK(tp.reduce(std::vector{1}, 0) == std::vector{rank() == 0 ? n : 1});
  mesh.close();
}

TEST_CASE("returned results: the counts of the blocks are found out") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const int n = size();
  const auto self = static_cast<std::size_t>(rank());
  // Member k has k values: the first has none.
  const std::vector<int> mine(self, rank());
  const auto all = tp.all_gather_v(mine);
  CHECK(all.values.size() == static_cast<std::size_t>(n * (n - 1) / 2));
  CHECK(all.blocks.counts().back() == n - 1);
  for (int k = 0; k < n; ++k) {
    const auto theirs = all[k];
    CHECK(std::vector<int>(theirs.begin(), theirs.end()) ==
          std::vector<int>(static_cast<std::size_t>(k), k));
  }
  const auto flags = tp.all_gather_v(std::array<bool, 2>{rank() == 0, true});
  CHECK(flags[n - 1] == std::vector<bool>{n == 1, true});
  const auto at_root = tp.gather_v(mine, n - 1);
  CHECK(at_root.values == (tp.is_last() ? all.values : std::vector<int>{}));
  CHECK(at_root.blocks.counts() == all.blocks.counts());
  CHECK(tp.scatter_v(tp.is_last() ? all.values : std::vector<int>{},
                     tp.is_last() ? all.blocks : Blocks{}, n - 1) == mine);
  // Member a sends b values to member b.
  std::vector<int> out;
  std::vector<int> counts = up_to(n);
  for (const int b : counts) out.insert(out.end(), static_cast<std::size_t>(b), rank());
  const auto received = tp.all_to_all_v(out, counts);
  CHECK(received.values.size() == self * static_cast<std::size_t>(n));
  CHECK(received.blocks.counts() == std::vector<std::int64_t>(static_cast<std::size_t>(n), rank()));
  if (rank() > 0) CHECK(received[n - 1].front() == n - 1);
  const std::vector<int> ones(out.size(), 1);
  CHECK(tp.reduce_scatter_v(ones, counts) == std::vector<int>(self, n));
  if (n > 1)
    CHECK_THROWS_WITH_AS(
        static_cast<void>(tp.scatter_v(mine, std::vector<int>(static_cast<std::size_t>(n + 1)),
                                       tp.rank_in_group())),
        doctest::Contains("in has"), UsageError);
  mesh.close();
}

TEST_CASE("returned results: wrong sizes are refused before the members exchange the sizes") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::size_t>(size());
  // Only the first member calls the group wrongly. The others must get nothing of it.
  const auto is_refused = [&](const char* part, auto&& call) {
    if (rank() == 0) CHECK_THROWS_WITH_AS(call(), doctest::Contains(part), UsageError);
    CHECK(tp.all_reduce(1) == size());
  };
  const std::vector<int> in(10);
  const std::vector<int> large(n, 10);
  std::vector<int> negative(n, 0);
  negative.back() = -1;
  for (const auto& [counts, part] :
       {std::pair{large, "block 1 of in lies outside its 10 elements"},
        std::pair{negative, " has -1 elements"}, std::pair{std::vector<int>(n + 1), "in has "}}) {
    is_refused(part, [&] { (void)tp.scatter_v(in, counts, 0); });
    is_refused(part, [&] { (void)tp.all_to_all_v(in, counts); });
    is_refused(part, [&] { (void)tp.reduce_scatter_v(in, counts); });
  }
  is_refused("the root -1 is outside the group", [&] { (void)tp.scatter_v(in, large, -1); });
  is_refused("is outside the group", [&] { (void)tp.gather_v(in, size()); });
  mesh.close();
}

TEST_CASE("returned results: the blocks of a SlicedAxis have no whole rows") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const float rows[6][4]{};
  const SlicedAxis columns{{6, 4}, 1, tp};
  const doctest::Contains part{"a SlicedAxis may divide the arrays"};
  CHECK_THROWS_WITH_AS(static_cast<void>(tp.scatter_v(rows, columns, 0)), part, UsageError);
  CHECK_THROWS_WITH_AS(static_cast<void>(tp.reduce_scatter_v(rows, columns)), part, UsageError);
  const std::vector<float> flat(24, 1);
  const auto mine = static_cast<std::size_t>(columns.counts()[static_cast<std::size_t>(rank())]);
  CHECK(tp.scatter_v(flat, columns, 0) == std::vector<float>(mine, 1));
  mesh.close();
}

TEST_CASE("dynamic groups of a list of numbers, closed by their pointer") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  if (rank() == 0) {
    const auto alone = mesh.new_group({0});
    CHECK(alone->size() == 1);
    mesh.close(alone);
  }
  const auto everyone = mesh.new_group(up_to(size()), "everyone");
  CHECK(everyone->all_reduce(1) == size());
  mesh.close(everyone);
  const auto first = mesh.new_group(up_to(size()));
  const auto second = mesh.new_group(up_to(size()));
  if (size() > 1) CHECK(second->name() != first->name());
  mesh.close(second);
  mesh.close(first);
  const std::vector<std::vector<int>> lists{{size() - 1}, up_to(size())};
  const auto of_integers = mesh.new_groups(lists);
  CHECK((of_integers[0] != nullptr) == (rank() == size() - 1));
  CHECK(of_integers[1]->all_reduce(1) == size());
  const auto groups = mesh.new_groups({{0}, {0}});
  CHECK((groups[0] != nullptr) == (rank() == 0));
  if (rank() != 0) CHECK_THROWS_AS(mesh.close(groups[0]), UsageError);
  mesh.close();
}
