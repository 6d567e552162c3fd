// SPDX-License-Identifier: BSD-3-Clause
// Reductions with a function of the program.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <stdexcept>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

namespace {

// 2 x 2 matrices modulo a prime: their product is associative and not commutative.
struct Square {
  std::array<std::int64_t, 4> m{1, 0, 0, 1};
  friend bool operator==(const Square&, const Square&) = default;
};
constexpr std::int64_t prime = 10007;
Square operator*(const Square& a, const Square& b) {
  const auto entry = [&](std::size_t r, std::size_t c) {
    return (a.m[2 * r] * b.m[c] + a.m[2 * r + 1] * b.m[2 + c]) % prime;
  };
  return {{entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)}};
}
Square multiplied(const Square& a, const Square& b) { return a * b; }

Square square_of(std::int64_t rank, std::int64_t i) {
  return {{1 + rank, 2 + i, 3 + rank * i % 5, 5 + 7 * rank}};
}
std::vector<Square> squares(std::int64_t rank, std::int64_t count) {
  std::vector<Square> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(square_of(rank, i));
  return result;
}
Square product(std::int64_t ranks, std::int64_t i) {
  Square result;
  for (std::int64_t r = 0; r < ranks; ++r) result = result * square_of(r, i);
  return result;
}

void test_products(GroupCoordinator& group) {
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  for (const std::int64_t count : {0, 1, 5, 9}) {
    CAPTURE(count);
    std::vector<Square> all;
    for (std::int64_t i = 0; i < n * count; ++i) all.push_back(product(n, i));
    const std::vector<Square> first(all.begin(), all.begin() + count);
    const std::vector<Square> mine(all.begin() + self * count, all.begin() + (self + 1) * count);
    const auto in = squares(self, count);
    const auto wide = squares(self, n * count);
    const std::vector<Square> empty(static_cast<std::size_t>(count));

    auto values = in;
    group.all_reduce(values, multiplied);
    CHECK(values == first);
    auto out = empty;
    group.all_reduce(in, out, std::multiplies<>{});
    CHECK(out == first);
    out = empty;
    group.reduce(in, out, n - 1, multiplied);
    if (group.is_last()) CHECK(out == first);
    out = empty;
    group.reduce_scatter(wide, out, multiplied);
    CHECK(out == mine);

    // The function and the containers that were moved in live as long as the operation.
    std::int64_t calls = 0;
    auto pending =
        group.all_reduce_async(std::vector<Square>{in}, [&calls](const Square& a, const Square& b) {
          ++calls;
          return a * b;
        });
    out = empty;
    auto scattered = group.reduce_scatter_async(std::vector<Square>{wide}, out, multiplied);
    auto at_root = empty;
    auto reduced = group.reduce_async(in, at_root, 0, multiplied);
    auto separate = group.all_reduce_async(in, std::vector<Square>{empty}, multiplied);
    CHECK(separate.take() == first);
    CHECK(pending.take() == first);
    scattered.wait();
    CHECK(out == mine);
    reduced.wait();
    if (group.is_first()) CHECK(at_root == first);
  }
}

}  // namespace

TEST_CASE("a function of the program reduces in group order, blocking and asynchronous") {
  for (const bool polled : {false, true}) {
    MeshOptions options;
    options.largest_count = polled ? 3 : 1 << 20;
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD,
              rankmesh_test::size() % 2 == 0 ? "dp=2,tp=auto ; all=dp*tp" : "all=auto", options};
    test_products(mesh["all"]);
    if (rankmesh_test::size() % 2 == 0) test_products(mesh["tp"]);
    mesh.close();
  }
}

TEST_CASE("any trivially copyable type is reduced, also one of an odd size") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto self = static_cast<int>(tp.rank_in_group().value());
  struct Best {
    float score;
    int rank;
  };
  std::vector<Best> best{{static_cast<float>((self * 7) % 5), self}};
  tp.all_reduce(
      best,
      [](const Best& a, const Best& b) {
        return a.score > b.score || (a.score == b.score && a.rank < b.rank) ? a : b;
      },
      Commutative::yes);
  int expected = 0;
  for (int r = 0; r < tp.size(); ++r)
    if ((r * 7) % 5 > (expected * 7) % 5) expected = r;
  CHECK(best[0].rank == expected);

  using Three = std::array<unsigned char, 3>;
  std::vector<Three> threes(4, Three{1, 2, static_cast<unsigned char>(self)});
  tp.all_reduce(threes, [](const Three& a, const Three& b) {
    return Three{a[0], static_cast<unsigned char>(a[1] ^ b[1]), std::max(a[2], b[2])};
  });
  CHECK(threes[3][2] == tp.size() - 1);
  CHECK(threes[0][0] == 1);
  mesh.close();
}

TEST_CASE("an exception of the function ends the operation on all members, and then the group") {
  for (const bool is_async : {false, true}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto | dp=auto"};
    auto& tp = mesh["tp"];
    bool threw = false;
    const auto fails = [&](int a, int b) {
      threw = true;
      if (a >= 0) throw std::domain_error{"no such sum"};
      return a + b;
    };
    std::vector<int> values(3, 1);
    try {
      if (is_async)
        tp.all_reduce_async(values, fails).wait();
      else
        tp.all_reduce(values, fails);
      CHECK(tp.size() == 1);  // no member returns, wherever the function has been called
    } catch (const UsageError& error) {
      CHECK(threw);
      CHECK_CONTAINS(error.message(), "no such sum");
      CHECK_THROWS_AS(std::rethrow_if_nested(error), std::domain_error);
    } catch (const PeerError& error) {  // another member was faster
      CHECK_CONTAINS(error.message(), "no such sum");
    }
    std::vector<int> ones(2, 1);
    if (tp.size() == 1) continue;
    rankmesh_test::wait_for_all();
    CHECK_THROWS_WITH_AS(tp.all_reduce(ones), doctest::Contains("no such sum"), ClosedError);
  }
}

TEST_CASE("members that reduce elements of different types with a function throw") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const bool is_last = rankmesh_test::rank() == rankmesh_test::last();
  std::vector<float> reals(3, 1);
  std::vector<std::int32_t> integers(3, 1);
  const auto sum = [](auto a, auto b) { return a + b; };
  try {
    if (is_last)
      tp.all_reduce(integers, sum);
    else
      tp.all_reduce(reals, sum);
    FAIL("no exception");
  } catch (const MismatchError& error) {
    CHECK_CONTAINS(error.message(), "tp.all_reduce(3 x int32, user reduction");
    CHECK_CONTAINS(error.message(), "tp.all_reduce(3 x float32, user reduction");
  }
}
