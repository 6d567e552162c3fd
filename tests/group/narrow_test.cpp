// SPDX-License-Identifier: BSD-3-Clause
// Reductions of 16- and 8-bit floats on the host: computed in float32, rounded once.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

using namespace rankmesh;
using rankmesh_test::size;

namespace {

// Sixteenths: sums of a few are exact in float32, and most of them are not in the narrow type.
template <class T>
std::vector<T> sixteenths(std::int64_t rank, std::int64_t n) {
  std::vector<T> result;
  for (std::int64_t i = 0; i < n; ++i)
    result.emplace_back(static_cast<float>((rank * 37 + i * 11) % 29 - 9) / 16.0F);
  return result;
}

// Narrow types are reduced in float32.
template <class T>
T narrow_reduced(std::int64_t ranks, std::int64_t i, ReduceOp op) {
  return T{rankmesh_test::reduced<float>(op, ranks, [&](std::int64_t r) {
    return static_cast<float>(sixteenths<T>(r, i + 1).back());
  })};
}

// MPI chooses the order in which products are rounded in float32, so results may differ by one
// unit of the narrow type.
template <class T>
bool agree(const std::vector<T>& is, const std::vector<T>& expected, ReduceOp op) {
  return std::ranges::equal(is, expected, [&](T a, T b) {
    const float x = static_cast<float>(a);
    const float y = static_cast<float>(b);
    return op == ReduceOp::prod ? std::abs(x - y) <= std::abs(y) / 4 : x == y;
  });
}

template <class T>
void test_narrow(GroupCoordinator& group) {
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  for (const std::int64_t count : {0, 1, 5}) {
    for (const ReduceOp op : rankmesh_test::all_reductions) {
      CAPTURE(to_string(op));
      CAPTURE(to_string(DataTypeOf<T>::value));
      std::vector<T> whole;
      for (std::int64_t i = 0; i < n * count; ++i) whole.push_back(narrow_reduced<T>(n, i, op));
      const auto sized = [](std::int64_t elements) {
        return std::vector<T>(static_cast<std::size_t>(elements));
      };
      const std::vector<T> first(whole.begin(), whole.begin() + count);
      const std::vector<T> mine(whole.begin() + self * count, whole.begin() + (self + 1) * count);
      const auto wide = sixteenths<T>(self, n * count);
      const auto in = sixteenths<T>(self, count);

      auto in_place = in;
      group.all_reduce(in_place, op);
      CHECK(agree(in_place, first, op));
      auto out = sized(count);
      group.all_reduce_async(in, out, op).wait();
      CHECK(agree(out, first, op));
      CHECK(agree(group.all_reduce_async(std::vector<T>{in}, op).take(), first, op));

      auto at_root = in;
      group.reduce(at_root, n - 1, op);
      CHECK(agree(at_root, group.is_last() ? first : in, op));
      out = sized(0);
      if (self == 0) out = sized(count);
      group.reduce_async(in, out, 0, op).wait();
      if (self == 0) CHECK(agree(out, first, op));

      out = sized(count);
      group.reduce_scatter(wide, out, op);
      CHECK(agree(out, mine, op));
      std::vector<std::int64_t> counts(static_cast<std::size_t>(n), count);
      out = sized(count);
      group.reduce_scatter_v(wide, out, counts, op);
      CHECK(agree(out, mine, op));
    }
  }
}

}  // namespace

TEST_CASE("narrow floats are reduced on the host, blocking and asynchronous") {
  for (const bool polled : {false, true}) {
    MeshOptions options;
    options.largest_count = polled ? 3 : 1 << 20;
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    test_narrow<Float16>(mesh["tp"]);
    test_narrow<BFloat16>(mesh["tp"]);
    test_narrow<Float8E4M3>(mesh["tp"]);
    test_narrow<Float8E5M2>(mesh["tp"]);
    mesh.close();
  }
}

TEST_CASE("a narrow sum is rounded once, and the sum of an average does not overflow") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<float>(tp.size());
  // Rounded at each step, 256 + 1 + 1 + ... stays 256 in bfloat16.
  std::vector<BFloat16> values{BFloat16{tp.is_first() ? 256.0F : 1.0F}};
  tp.all_reduce(values);
  CHECK(values[0] == BFloat16{255.0F + n});
  std::vector<Float16> large{Float16{60000.0F}};
  tp.all_reduce(large, ReduceOp::avg);
  CHECK(large[0] == Float16{60000.0F});
  mesh.close();
}

TEST_CASE("an average of integers is the sum, divided and truncated toward zero") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::int32_t>(tp.size());
  // Sums of -(2n - 1), 2n - 1 and 0.
  const bool first = tp.is_first();
  std::vector<std::int32_t> values{first ? -(2 * n - 1) : 0, first ? 2 * n - 1 : 0,
                                   first ? n - 1 : -1};
  tp.all_reduce(values, ReduceOp::avg);
  CHECK(values == std::vector<std::int32_t>{-1, 1, 0});
  mesh.close();
}

TEST_CASE("an average at a root leaves the output of the others as it is") {
  for (const char* transport : {"mpi", "shm"}) {
    CAPTURE(transport);
    MeshOptions options;
    options.routes = std::string{"*.*:host="} + transport;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const std::vector<std::int32_t> in(3, 6);
    std::vector<std::int32_t> out(3, 1000);
    tp.reduce(in, out, 0, ReduceOp::avg);
    CHECK(out == std::vector<std::int32_t>(3, tp.is_first() ? 6 : 1000));
    mesh.close();
  }
}

TEST_CASE("a batch can contain sums of narrow floats and other axes") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::vector<BFloat16> values(3, BFloat16{1.5F});
  const std::vector<float> row{static_cast<float>(tp.rank_in_group().value()), 7};
  std::vector<float> whole(static_cast<std::size_t>(2 * tp.size()));
  NcclGroup together{mesh};
  auto sum = tp.all_reduce_async(values);
  auto columns = tp.all_gather_async(row, whole, Axis({2, 1}, 1));
  together.end();
  sum.wait();
  columns.wait();
  CHECK(static_cast<float>(values[2]) == 1.5F * static_cast<float>(tp.size()));
  CHECK(whole[static_cast<std::size_t>(tp.size() - 1)] == static_cast<float>(tp.size() - 1));
  CHECK(whole.back() == 7);
  mesh.close();
}
