// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/adapt/xtensor.hpp"

#include <xtensor/xadapt.hpp>
#include <xtensor/xview.hpp>

#include "arrays.hpp"

using namespace rankmesh;
using rankmesh_test::size;

namespace {

auto at_of_xtensor(auto& array) {
  return [&](std::int64_t i, std::int64_t j) -> float& { return array(i, j); };
}
template <xt::layout_type layout>
auto matrix_of_xtensor(std::int64_t rows, std::int64_t columns) {
  return xt::xtensor<float, 2, layout>::from_shape(
      {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)});
}

}  // namespace

TEST_CASE("arrays of xtensor are reduced and gathered in both orders") {
  auto rows = matrix_of_xtensor<xt::layout_type::row_major>(3, 4);
  auto columns = matrix_of_xtensor<xt::layout_type::column_major>(3, 4);
  xt::xarray<float> any = xt::zeros<float>({3, 4});
  xt::xtensor_fixed<float, xt::xshape<3, 4>> fixed;
  rankmesh_test::check_sums(rows, at_of_xtensor(rows), 3, 4);
  rankmesh_test::check_sums(columns, at_of_xtensor(columns), 3, 4);
  rankmesh_test::check_sums(any, at_of_xtensor(any), 3, 4);
  rankmesh_test::check_sums(fixed, at_of_xtensor(fixed), 3, 4);
  const auto at = [](auto& array, std::int64_t i, std::int64_t j) -> float& { return array(i, j); };
  rankmesh_test::check_blocks(matrix_of_xtensor<xt::layout_type::row_major>, at);
  rankmesh_test::check_blocks(matrix_of_xtensor<xt::layout_type::column_major>, at);
}

TEST_CASE("views and adaptors of xtensor") {
  static_assert(!detail::is_borrowed<xt::xarray<float>>);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  auto matrix = matrix_of_xtensor<xt::layout_type::row_major>(3, 4);
  matrix.fill(1);
  dp.all_reduce(xt::view(matrix, 1, xt::all()));
  CHECK(matrix(1, 3) == static_cast<float>(size()));
  CHECK(matrix(0, 3) == 1);
  CHECK_THROWS_AS(dp.all_reduce(xt::view(matrix, xt::all(), xt::range(0, 2))), UsageError);
  std::vector<float> values(6, 1);
  auto adapted = xt::adapt(values, std::vector<std::size_t>{2, 3});
  static_assert(detail::is_borrowed<decltype(adapted)>);
  dp.all_reduce(adapted);
  CHECK(values.back() == static_cast<float>(size()));
  mesh.close();
}

TEST_CASE("a redistribution moves views of xtensor") {
  auto source = matrix_of_xtensor<xt::layout_type::column_major>(3, size() + 2);
  auto target = matrix_of_xtensor<xt::layout_type::row_major>(size(), 3);
  auto row = xt::view(source, xt::range(1, 2), xt::range(1, size() + 1));
  auto column = xt::view(target, xt::all(), xt::range(1, 2));
  rankmesh_test::check_move(row, at_of_xtensor(row), column, at_of_xtensor(column));
}
