// SPDX-License-Identifier: BSD-3-Clause
// Prefix reductions: what the table of conformance does not have, and differing calls.
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// Inside a node, over MPI behind the comparison in shared memory, and with the option `check`.
std::vector<MeshOptions> all_options() {
  std::vector<MeshOptions> all(3);
  all[1].routes = "*.*:host=mpi";
  all[2].routes = "*.*:host=mpi";
  all[2].check = true;
  return all;
}

// The affine function x -> a x + b. One after another is not commutative.
struct Affine {
  std::int64_t a = 1;
  std::int64_t b = 0;
  bool operator==(const Affine&) const = default;
};
Affine after(const Affine& first, const Affine& second) {
  return {first.a * second.a % 1009, (first.b * second.a + second.b) % 1009};
}
Affine of_rank(int k) { return {k + 2, 3 * k + 1}; }
Affine of_ranks_before(int k) {
  Affine result;
  for (int j = 0; j < k; ++j) result = after(result, of_rank(j));
  return result;
}

// The last rank makes another call than the others. All get both texts.
struct Difference {
  std::function<void(GroupCoordinator&)> usual, other;
  std::string usual_text, other_text;
};
void check_named(const std::vector<Difference>& differences) {
  const bool is_odd = rank() == last();
  for (MeshOptions& options : all_options())
    for (const Difference& difference : differences) {
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
      auto& tp = mesh["tp"];
      const std::string message = thrown_by<MismatchError>([&] {
                                    is_odd ? difference.other(tp) : difference.usual(tp);
                                  }).message();
      CHECK_CONTAINS(message, "tp." + difference.usual_text);
      CHECK_CONTAINS(message, "tp." + difference.other_text);
      wait_for_all();
    }
}

}  // namespace

TEST_CASE("scan: of ranges, containers, variables and constants") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const int k = rank();
  std::vector<int> values{1, k, -k};
  tp.scan(values);
  CHECK(values == std::vector{k + 1, k * (k + 1) / 2, -k * (k + 1) / 2});
  // A container that is moved into the call is returned.
  CHECK(tp.scan(std::vector{1, k}) == std::vector{k + 1, k * (k + 1) / 2});
  int count = 3;
  CHECK(tp.scan(count) == 3 * (k + 1));
  CHECK(count == 3 * (k + 1));
  CHECK(tp.scan(static_cast<double>(-k), ReduceOp::min) == -k);
  CHECK(tp.scan(k == 0 ? 7.0F : 1.0F, ReduceOp::max) == 7);
  CHECK(tp.scan(std::int64_t{2}, ReduceOp::prod) == std::int64_t{1} << (k + 1));
  CHECK(tp.scan(of_rank(k), after) == of_ranks_before(k + 1));
  mesh.close();
}

TEST_CASE("scan: in flight at the same time, with functions and containers that are moved") {
  for (MeshOptions& options : all_options()) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const int k = rank();
    std::vector<int> sums{1, k};
    std::vector<Affine> functions(3, of_rank(k));
    Work first = tp.scan_async(sums);
    auto second = tp.scan_async(std::vector<float>(2, 1.5F), ReduceOp::prod);
    Work third = tp.scan_async(functions, after);
    third.wait();
    const std::vector<float> products = second.take();
    first.wait();
    CHECK(sums == std::vector{k + 1, k * (k + 1) / 2});
    float product = 1.5F;
    for (int j = 0; j < k; ++j) product *= 1.5F;
    CHECK(products == std::vector(2, product));
    CHECK(functions == std::vector(3, of_ranks_before(k + 1)));
    mesh.close();
  }
}

TEST_CASE("scan: complex products, narrow floats and arrays") {
  for (MeshOptions& options : all_options()) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const int k = rank();
    using Complex = std::complex<double>;
    Complex turned{1};
    for (int j = 0; j <= k; ++j) turned *= Complex{0, 1};
    CHECK(tp.scan(Complex{0, 1}, ReduceOp::prod) == turned);
    std::vector<Complex> started{{0, 1}};
    tp.scan_async(started, ReduceOp::prod).wait();
    CHECK(started[0] == turned);
    CHECK(tp.scan(Complex{0, 1}) == Complex{0, 1.0 * (k + 1)});
    std::vector<Float16> halves(3, Float16{0.5F});
    tp.scan(halves);
    CHECK(static_cast<float>(halves[2]) == 0.5F * static_cast<float>(k + 1));
    std::vector<std::array<int, 2>> pairs{{1, k}};
    tp.scan(pairs);
    CHECK(pairs[0] == std::array{k + 1, k * (k + 1) / 2});
    mesh.close();
  }
}

TEST_CASE("scan: a reduction that it does not have, and a function that throws") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  static std::vector<float> values(4, 1.0F);  // MPI may still use it after the failure at the end
  const std::string text = "tp.scan on rank " + std::to_string(rank()) + " of " +
                           std::to_string(size()) + " in the group: avg cannot be computed";
  CHECK_CONTAINS(thrown_by<UsageError>([&] { tp.scan(values, ReduceOp::avg); }).message(), text);
  const auto start = [&] { static_cast<void>(tp.scan_async(values, ReduceOp::avg)); };
  CHECK_CONTAINS(thrown_by<UsageError>(start).message(), text);
  CHECK_THROWS_AS(static_cast<void>(tp.scan(std::complex<float>{1}, ReduceOp::max)), UsageError);
  CHECK(values == std::vector(4, 1.0F));
  tp.scan(values);
  CHECK(values[3] == static_cast<float>(rank() + 1));
  const auto throws = [](const float&, const float&) -> float { throw std::range_error{"no"}; };
  // Every member but the first needs the function. On a member that comes later, it may be the
  // error of another one. MPI may call the function on the first member, too.
  std::string message;
  try {
    tp.scan(values, throws);
  } catch (const Error& error) {
    message = error.message();
  }
  if (rank() > 0) CHECK_CONTAINS(message, "a reduction function threw on this rank: no");
}

TEST_CASE("scan: differing calls are named on all members") {
  NEEDS_RANKS(2);
  static std::vector<float> floats(4), more(5000);  // MPI may still use them after a failure
  static std::vector<int> ints(4);
  const auto usual = [&](GroupCoordinator& g) { g.scan(floats); };
  const char* const text = "scan(4 x float32, sum";
  check_named({
      {usual, [&](auto& g) { g.scan(ints); }, text, "scan(4 x int32, sum"},
      {usual, [&](auto& g) { g.scan(more); }, text, "scan(5000 x float32, sum"},
      {usual, [&](auto& g) { g.scan(floats, ReduceOp::max); }, text, "scan(4 x float32, max"},
      {usual, [&](auto& g) { g.all_reduce(floats); }, text,
       "all_reduce(4 x float32, sum, in place"},
      {usual, [&](auto& g) { g.scan(floats, std::plus<>{}); }, text,
       "scan(4 x float32, user reduction"},
      {[&](auto& g) { g.scan_async(floats).wait(); }, [&](auto& g) { g.scan_async(ints).wait(); },
       text, "scan(4 x int32, sum"},
  });
}

TEST_CASE("exscan: the first member gets zeros, or values T{}") {
  for (MeshOptions& options : all_options()) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const auto alone = mesh.new_group({Rank{rank()}});
    for (GroupCoordinator* group : {&mesh["tp"], alone.get()}) {
      const auto k = static_cast<int>(group->rank_in_group().value());
      std::vector<double> values(700, 3.0);
      group->exscan(values);
      CHECK(values == std::vector(700, 3.0 * k));
      CHECK(group->exscan(std::vector{1, 2}, std::plus<int>{}) == std::vector{k, 2 * k});
      int count = 3;
      CHECK(group->exscan(count) == 3 * k);
      CHECK(count == 3 * k);
      CHECK(group->exscan(of_rank(k), after) == of_ranks_before(k));
      std::vector<Affine> functions(2, of_rank(k));
      Work first = group->exscan_async(functions, after);
      auto second = group->exscan_async(std::vector{1.5F});
      CHECK(second.take() == std::vector{1.5F * static_cast<float>(k)});
      first.wait();
      CHECK(functions == std::vector(2, of_ranks_before(k)));
    }
    mesh.close(alone);
    mesh.close();
  }
}

TEST_CASE("exscan: differing calls are named on all members") {
  NEEDS_RANKS(2);
  static std::vector<float> floats(4), more(5000);  // MPI may still use them after a failure
  const auto usual = [&](GroupCoordinator& g) { g.exscan(floats); };
  const char* const text = "exscan(4 x float32, sum";
  check_named({
      {usual, [&](auto& g) { g.scan(floats); }, text, "scan(4 x float32, sum"},
      {usual, [&](auto& g) { g.exscan(more); }, text, "exscan(5000 x float32, sum"},
      {[&](auto& g) { g.exscan_async(floats).wait(); },
       [&](auto& g) { g.scan_async(floats).wait(); }, text, "scan(4 x float32, sum"},
  });
}
