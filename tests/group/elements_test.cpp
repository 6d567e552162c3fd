// SPDX-License-Identifier: BSD-3-Clause
// Elements that are no plain numbers: structs, enumerations, bool, complex numbers and arrays.
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

enum class Colour : std::int16_t { red, green, blue };

// 12 bytes: no multiple of 8, and no divisor of all numbers of members.
struct Particle {
  float x = 0;
  std::int32_t cell = 0;
  Colour colour = Colour::red;
  bool is_fixed = false;
  friend bool operator==(const Particle&, const Particle&) = default;
};
using Complex = std::complex<float>;

Particle particle(int member, int i) {
  return {static_cast<float>(member), 10 * member + i, static_cast<Colour>(i % 3), i % 2 == 1};
}
Complex complex(int member, int i) {
  return {static_cast<float>(member), static_cast<float>(100 * i)};
}

template <class T>
using Make = T (*)(int, int);

// The block of member a for member b has a + b + 1 elements.
template <class T>
std::vector<T> block(Make<T> make, int from, int to, int count) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(make(from, to + i));
  return values;
}
template <class T>
std::vector<T> joined(const std::vector<std::vector<T>>& parts) {
  std::vector<T> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

template <class T>
void test_equal_blocks(GroupCoordinator& tp, Make<T> make) {
  const int n = size();
  const int self = rank();
  const auto un = static_cast<std::size_t>(n);
  std::vector<std::vector<T>> parts;
  std::vector<std::vector<T>> sent;
  std::vector<std::vector<T>> expected;
  for (int k = 0; k < n; ++k) {
    parts.push_back(block<T>(make, k, 0, 3));
    sent.push_back(block<T>(make, self, k, 3));
    expected.push_back(block<T>(make, k, self, 3));
  }
  std::vector<T> all(3 * un);
  tp.all_gather(parts[static_cast<std::size_t>(self)], all);
  CHECK(all == joined(parts));
  std::vector<T> at_root(tp.is_last() ? 3 * un : 0);
  tp.gather(parts[static_cast<std::size_t>(self)], at_root, n - 1);
  if (tp.is_last()) CHECK(at_root == joined(parts));
  std::vector<T> mine(3);
  tp.scatter(joined(parts), mine, 0);
  CHECK(mine == parts[static_cast<std::size_t>(self)]);
  std::vector<T> received(3 * un);
  tp.all_to_all(joined(sent), received);
  CHECK(received == joined(expected));
  auto copy = parts[static_cast<std::size_t>(self)];
  tp.broadcast(copy, n - 1);
  CHECK(copy == parts.back());
  auto work = tp.all_gather_async(parts[static_cast<std::size_t>(self)], std::vector<T>(3 * un));
  CHECK(work.take() == all);
  tp.send_recv(parts[static_cast<std::size_t>(self)], copy, next, prev);
  CHECK(copy == parts[static_cast<std::size_t>((self + n - 1) % n)]);
}

template <class T>
void test_blocks(GroupCoordinator& tp, Make<T> make) {
  const int n = size();
  const int self = rank();
  std::vector<int> counts;
  std::vector<std::vector<T>> parts;
  for (int k = 0; k < n; ++k) {
    counts.push_back(k % 3 + 1);
    parts.push_back(block<T>(make, k, 0, counts.back()));
  }
  const auto& own = parts[static_cast<std::size_t>(self)];
  std::vector<T> all(joined(parts).size());
  tp.all_gather_v(own, all, counts);
  CHECK(all == joined(parts));
  std::vector<T> again(all.size());
  tp.all_gather_v_async(own, again, counts).wait();
  CHECK(again == all);
  std::vector<T> mine(own.size());
  tp.scatter_v(all, mine, counts, 0);
  CHECK(mine == own);
  std::vector<int> sent;
  std::vector<int> received;
  std::vector<std::vector<T>> out;
  std::vector<std::vector<T>> in;
  for (int k = 0; k < n; ++k) {
    sent.push_back(self + k + 1);
    received.push_back(self + k + 1);
    out.push_back(block<T>(make, self, k, sent.back()));
    in.push_back(block<T>(make, k, self, received.back()));
  }
  std::vector<T> result(joined(in).size());
  tp.all_to_all_v(joined(out), result, sent, received);
  CHECK(result == joined(in));
}

}  // namespace

TEST_CASE("elements: structs, enumerations, bool and complex numbers are moved") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  test_equal_blocks<Particle>(tp, particle);
  test_equal_blocks<Complex>(tp, complex);
  test_equal_blocks<Colour>(tp, [](int a, int i) { return static_cast<Colour>((a + i) % 3); });
  test_blocks<Particle>(tp, particle);
  test_blocks<Complex>(tp, complex);
  std::array<bool, 2> flags{rank() == 0, rank() != 0};
  tp.broadcast(flags, 0);
  CHECK(flags == std::array{true, false});
  mesh.close();
}

TEST_CASE("elements: sums and averages of complex numbers") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<float>(size());
  std::vector<std::complex<float>> values{{1, static_cast<float>(rank())}, {0, -2}};
  tp.all_reduce(values);
  CHECK(values == std::vector<std::complex<float>>{{n, n * (n - 1) / 2}, {0, -2 * n}});
  std::complex<double> one{4, 8};
  CHECK(tp.all_reduce(one, ReduceOp::avg) == std::complex<double>{4, 8});
  // Every member gets one element.
  std::vector<std::complex<double>> wide(static_cast<std::size_t>(size()), {1, 2});
  std::vector<std::complex<double>> mine(1);
  tp.reduce_scatter(wide, mine);
  CHECK(mine.front() == std::complex<double>{n, 2 * n});
  CHECK_THROWS_WITH_AS(tp.all_reduce(values, ReduceOp::max),
                       doctest::Contains("complex numbers cannot be reduced with max"), UsageError);
  std::complex<double> product{0, 1};
  tp.all_reduce(product, std::multiplies<>{});
  CHECK(product == std::array<std::complex<double>, 4>{
                       {{1, 0}, {0, 1}, {-1, 0}, {0, -1}}}[static_cast<std::size_t>(size() % 4)]);
  mesh.close();
}

TEST_CASE("elements: arrays with several dimensions") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const float n = static_cast<float>(size());
  float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  tp.all_reduce(matrix);
  CHECK(matrix[0][2] == 3 * n);
  CHECK(matrix[1][0] == 4 * n);
  std::array<std::array<float, 3>, 2> nested{{{1, 1, 1}, {2, 2, 2}}};
  tp.all_reduce(nested);
  CHECK(nested[1][2] == 2 * n);
  std::vector<std::array<double, 3>> points(2, {static_cast<double>(rank()), 1, 2});
  tp.broadcast(points, size() - 1);
  CHECK(points[1][0] == size() - 1);
  // The result may be flat, and counts of v-forms count rows.
  std::vector<float> flat(6 * static_cast<std::size_t>(size()));
  tp.all_gather(matrix, flat);
  CHECK(flat.back() == 6 * n);
  const std::vector<int> rows(static_cast<std::size_t>(size()), 2);
  std::vector<std::array<double, 3>> all(2 * rows.size());
  tp.all_gather_v(points, all, rows);
  CHECK(all.back() == points.back());
  // Blocks along an axis: the shape is that of the numbers.
  std::vector<float> wide(flat.size());
  tp.all_gather(matrix, wide, Axis({2, 3}, 1));
  CHECK(wide[2] == matrix[0][2]);
  CHECK(wide[wide.size() - 1] == matrix[1][2]);
  CHECK(wide[wide.size() / 2] == matrix[1][0]);
  std::vector<Complex> row{{1, 2}, {3, 4}};
  std::vector<Complex> columns(2 * static_cast<std::size_t>(size()));
  tp.all_gather(row, columns, Axis({2, 1}, 1));
  CHECK(columns.front() == row[0]);
  CHECK(columns.back() == row[1]);
  mesh.close();
}

TEST_CASE("elements: wrong sizes are counted in elements of the program") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  NEEDS_RANKS(2);
  // 12 bytes could be divided by 2, 3, 4, 6 and 12 members, but one struct cannot.
  std::vector<Particle> one(1);
  std::vector<Particle> other(1);
  CHECK_THROWS_WITH_AS(tp.all_to_all(one, other),
                       doctest::Contains("the 1 elements of in cannot be divided by"), UsageError);
  CHECK_THROWS_WITH_AS(static_cast<void>(tp.all_to_all_async(one, other)),
                       doctest::Contains("the 1 elements of in cannot be divided by"), UsageError);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), INT64_MAX / 2);
  CHECK_THROWS_AS(tp.all_gather_v(one, other, counts), UsageError);
  counts.assign(counts.size(), -1);
  CHECK_THROWS_AS(tp.all_gather_v(one, other, counts), UsageError);
  mesh.close();
}
