// SPDX-License-Identifier: BSD-3-Clause
// Parts of an array that cannot be divided evenly, along any axis.
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

using Shape = std::array<std::int64_t, 3>;

// The values of an array whose value at every index is its number, and those of one part of it.
template <class T>
std::vector<T> numbers(std::int64_t n) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<T>(static_cast<float>(i)));
  return values;
}
template <class T>
std::vector<T> part_of(const Shape& shape, std::size_t axis, std::int64_t begin, std::int64_t end) {
  std::vector<T> part;
  std::array<std::int64_t, 3> i{};
  for (i[0] = 0; i[0] < shape[0]; ++i[0])
    for (i[1] = 0; i[1] < shape[1]; ++i[1])
      for (i[2] = 0; i[2] < shape[2]; ++i[2])
        if (begin <= i[axis] && i[axis] < end)
          part.push_back(
              static_cast<T>(static_cast<float>((i[0] * shape[1] + i[1]) * shape[2] + i[2])));
  return part;
}

template <class T>
void test_axis(GroupCoordinator& tp, const Shape& shape, std::size_t axis) {
  CAPTURE(axis);
  const auto whole = numbers<T>(shape[0] * shape[1] * shape[2]);
  const Slice mine{shape[axis], tp};
  const auto part = part_of<T>(shape, axis, mine.begin(), mine.end());
  const SlicedAxis sliced{shape, static_cast<std::int64_t>(axis), tp};
  const RankInGroup root = tp.size() - 1;

  std::vector<T> all(whole.size());
  tp.all_gather_v(part, all, sliced);
  CHECK(all == whole);
  // The axis of an asynchronous call may be gone before the call ends.
  std::vector<T> later(whole.size());
  Work gathering =
      tp.all_gather_v_async(part, later, SlicedAxis{shape, static_cast<std::int64_t>(axis), tp});
  const std::vector<std::vector<std::int64_t>> reused(8,
                                                      std::vector<std::int64_t>(shape[axis], -1));
  gathering.wait();
  CHECK(later == whole);
  std::vector<T> at_root(tp.is_last() ? whole.size() : 0);
  tp.gather_v(part, at_root, sliced, root);
  if (tp.is_last()) CHECK(at_root == whole);
  std::vector<T> received(part.size());
  tp.scatter_v(tp.is_last() ? whole : std::vector<T>{}, received, sliced, root);
  CHECK(received == part);
  std::vector<T> reduced(part.size());
  tp.reduce_scatter_v(whole, reduced, sliced);
  for (std::size_t i = 0; i < part.size(); ++i)
    CHECK(reduced[i] == part[i] * static_cast<T>(static_cast<float>(size())));
}

}  // namespace

TEST_CASE("slices: parts of unequal lengths along every axis") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  for (const Shape& shape : {Shape{7, 5, 3}, Shape{2, 1, 9}, Shape{0, 4, 2}})
    for (std::size_t axis = 0; axis < 3; ++axis) {
      test_axis<float>(tp, shape, axis);
      test_axis<std::complex<double>>(tp, shape, axis);
    }
  mesh.close();
}

TEST_CASE("slices: counts, and lengths of the program") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t n = size();
  const Blocks blocks = Blocks::even(2 * n + 1, tp);
  CHECK(blocks.counts().front() == (n > 1 ? 3 : 2 * n + 1));
  CHECK(Slice(2 * n + 1, tp).size() == blocks.counts()[static_cast<std::size_t>(rank())]);
  CHECK(Slice(2 * n + 1, tp).begin() == blocks.displacements()[static_cast<std::size_t>(rank())]);
  // Member k has k columns of two rows.
  std::vector<int> columns;
  for (int k = 0; k < n; ++k) columns.push_back(k);
  const std::int64_t width = n * (n - 1) / 2;
  const std::vector<int> part(2 * static_cast<std::size_t>(rank()), rank());
  std::vector<int> whole(2 * static_cast<std::size_t>(width), -1);
  tp.all_gather_v(part, whole, SlicedAxis({2, width}, -1, columns));
  std::vector<int> row;
  for (int k = 0; k < n; ++k) row.insert(row.end(), static_cast<std::size_t>(k), k);
  std::vector<int> expected = row;
  expected.insert(expected.end(), row.begin(), row.end());
  CHECK(whole == expected);
  std::vector<int> wrong(whole.size() + 1);
  CHECK_THROWS_WITH_AS(tp.all_gather_v(part, wrong, SlicedAxis({2, width}, 1, columns)),
                       doctest::Contains("but the shape has"), UsageError);
  CHECK_THROWS_WITH_AS(SlicedAxis({2, width + 1}, 1, columns), doctest::Contains("together"),
                       UsageError);
  CHECK_THROWS_AS(SlicedAxis({2, 3}, 2, tp), UsageError);
  CHECK_THROWS_AS(SlicedAxis({2, -3}, 1, tp), UsageError);
  CHECK_THROWS_AS(SlicedAxis({2, 0}, 1, std::vector<int>{1, -1}), UsageError);
  mesh.close();
}
