// SPDX-License-Identifier: BSD-3-Clause
// Reductions of values at the limits of their types, by each transport on host memory.
#include <doctest/doctest.h>

#include "group/shared_cases.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"

using namespace shared_cases;

namespace {

// A value that is exact in every narrow type. Products of more members than two are not.
template <class T>
T narrow_value(std::int64_t member, std::int64_t i) {
  return T{static_cast<float>((member * 5 + i * 3) % 7 + 9) / 16.0F};
}

// Combines the values of all members in float32, from the first to the last, and rounds once.
template <class T>
T expected_narrow(ReduceOp op, std::int64_t i) {
  return T{rankmesh_test::reduced<float>(
      op, size(), [&](std::int64_t k) { return static_cast<float>(narrow_value<T>(k, i)); })};
}

template <class T>
void check_narrow(GroupCoordinator& group, std::int64_t count) {
  CAPTURE(to_string(DataTypeOf<T>::value));
  CAPTURE(count);
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  std::vector<std::int64_t> counts;
  std::int64_t begin = 0, total = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    if (k == self) begin = total;
    counts.push_back(k == 1 ? 0 : count + k);
    total += counts.back();
  }
  std::vector<T> in;
  for (std::int64_t i = 0; i < total; ++i) in.push_back(narrow_value<T>(self, i));
  for (const ReduceOp op : rankmesh_test::all_reductions) {
    CAPTURE(to_string(op));
    const auto agree = [&](const std::vector<T>& values, std::int64_t first) {
      for (std::size_t i = 0; i < values.size(); ++i)
        if (static_cast<float>(values[i]) !=
            static_cast<float>(expected_narrow<T>(op, first + static_cast<std::int64_t>(i))))
          return false;
      return true;
    };
    auto all = in;
    group.all_reduce(all, op);
    CHECK(agree(all, 0));
    std::vector<T> mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(self)]));
    group.reduce_scatter_v(in, mine, counts, op);
    CHECK(agree(mine, begin));
  }
}

}  // namespace

// Shared memory combines in the order of the members, so the results are exact, not only close.
TEST_CASE("16- and 8-bit floats in shared memory are combined in order and rounded once") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  for (const std::int64_t count : {1, 300, 40000}) {
    check_narrow<Float16>(mesh["tp"], count);
    check_narrow<BFloat16>(mesh["tp"], count);
    check_narrow<Float8E4M3>(mesh["tp"], count);
    check_narrow<Float8E5M2>(mesh["tp"], count);
  }
  mesh.close();
}

TEST_CASE("averages of unsigned numbers above half of their range, by each transport") {
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi"}) {
    CAPTURE(routes);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed(routes.c_str())};
    auto& tp = mesh["tp"];
    const auto check = [&]<class T>(T high) {
      CAPTURE(sizeof(T));
      // The sum has the highest bit set and does not wrap around.
      const auto n = static_cast<T>(size());
      const T sum = static_cast<T>(high + n * (n - 1) / 2);
      const auto expected = static_cast<T>(sum / n);
      const T mine = static_cast<T>((rank() == 0 ? high : 0) + static_cast<T>(rank()));
      for (const std::size_t count : {std::size_t{3}, std::size_t{20000}}) {
        const std::vector<T> in(count, mine);
        std::vector<T> out(count);
        tp.all_reduce(in, out, ReduceOp::avg);
        CHECK(out == std::vector<T>(count, expected));
        out = in;
        tp.all_reduce_async(out, ReduceOp::avg).wait();
        CHECK(out == std::vector<T>(count, expected));
        tp.reduce(in, out, 0, ReduceOp::avg);
        if (rank() == 0) CHECK(out == std::vector<T>(count, expected));
      }
      const std::vector<T> blocks(3 * static_cast<std::size_t>(size()), mine);
      std::vector<T> block(3);
      tp.reduce_scatter(blocks, block, ReduceOp::avg);
      CHECK(block == std::vector<T>(3, expected));
    };
    check(std::uint64_t{3} << 62);
    check(std::uint32_t{3} << 30);
    mesh.close();
  }
}
