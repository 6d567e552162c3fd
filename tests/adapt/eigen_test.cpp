// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/adapt/eigen.hpp"

#include "arrays.hpp"

using namespace rankmesh;
using rankmesh_test::size;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

namespace {

auto at_of_eigen(auto& matrix) {
  return [&](std::int64_t i, std::int64_t j) -> float& { return matrix(i, j); };
}

}  // namespace

TEST_CASE("matrices of Eigen are reduced and gathered in both orders") {
  Eigen::MatrixXf columns(3, 4);
  RowMajor rows(3, 4);
  Eigen::Matrix3f fixed;
  rankmesh_test::check_sums(columns, at_of_eigen(columns), 3, 4);
  rankmesh_test::check_sums(rows, at_of_eigen(rows), 3, 4);
  rankmesh_test::check_sums(fixed, at_of_eigen(fixed), 3, 3);
  const auto at = [](auto& matrix, std::int64_t i, std::int64_t j) -> float& {
    return matrix(i, j);
  };
  rankmesh_test::check_blocks([](std::int64_t r, std::int64_t c) { return Eigen::MatrixXf(r, c); },
                              at);
  rankmesh_test::check_blocks([](std::int64_t r, std::int64_t c) { return RowMajor(r, c); }, at);
}

TEST_CASE("an expression of Eigen is neither memory nor a value") {
  Eigen::Matrix2f a, b;
  Eigen::Vector2f v;
  const auto is_refused = []<class T>(const T&) {
    return !Memory<T> && !MovableElement<T> && !Value<T> && refers_to_arrays<T>;
  };
  CHECK(is_refused(a.selfadjointView<Eigen::Upper>()));  // the compiler could copy its bytes
  CHECK(is_refused(a.triangularView<Eigen::Lower>()));
  CHECK(is_refused(v.asDiagonal()));
  CHECK(is_refused(a + b));
  CHECK(is_refused(a * b));
  static_assert(!refers_to_arrays<Eigen::Matrix2f> && Memory<decltype(a.col(0))>);
}

TEST_CASE("columns, rows and maps of Eigen") {
  static_assert(detail::is_borrowed<Eigen::Map<Eigen::VectorXf>>);
  static_assert(!detail::is_borrowed<Eigen::MatrixXf>);
  static_assert(!WritableMemory<const Eigen::MatrixXf&> &&
                !Memory<const Eigen::Map<const Eigen::VectorXf>&> == !Memory<Eigen::VectorXf>);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  Eigen::MatrixXf matrix = Eigen::MatrixXf::Ones(3, 4);
  dp.all_reduce(matrix.col(1));
  CHECK(matrix(2, 1) == static_cast<float>(size()));
  CHECK(matrix(2, 0) == 1);
  dp.all_reduce(matrix.middleCols(2, 2));
  CHECK(matrix(0, 3) == static_cast<float>(size()));
  CHECK_THROWS_AS(dp.all_reduce(matrix.row(1)), UsageError);
  CHECK_THROWS_AS(dp.all_reduce(matrix.topRows(2)), UsageError);
  Eigen::VectorXf vector = Eigen::VectorXf::Ones(5);
  dp.all_reduce(vector);
  float memory[4] = {1, 1, 1, 1};
  dp.all_reduce(Eigen::Map<Eigen::VectorXf>(memory, 4));
  CHECK(memory[3] == static_cast<float>(size()));
  // A matrix can be called with two numbers, but is no function.
  Eigen::MatrixXf sums(3, 4);
  dp.all_reduce(matrix, sums);
  CHECK(sums(0, 0) == static_cast<float>(size()));
  // Rows of the transpose are columns.
  Eigen::MatrixXf result(4, 3);
  CHECK_THROWS_AS(dp.all_reduce(matrix.transpose(), result), UsageError);
  const std::vector<float> all = dp.all_gather(vector);
  CHECK(all.size() == static_cast<std::size_t>(5 * size()));
  mesh.close();
}

TEST_CASE("a redistribution moves blocks of Eigen") {
  const int n = size();
  Eigen::MatrixXf source(3, n + 2), target(n, 2);
  auto row = source.block(1, 1, 1, n);
  auto column = target.col(1);
  auto one_column = target.block(0, 1, n, 1);
  static_cast<void>(column);
  rankmesh_test::check_move(row, at_of_eigen(row), one_column, at_of_eigen(one_column));
}
