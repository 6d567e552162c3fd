// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/adapt/torch.hpp"

#include <torch/nn/modules/linear.h>

#include "arrays.hpp"

using namespace rankmesh;
using rankmesh_test::number;
using rankmesh_test::size;

namespace {

auto at_of_tensor(const torch::Tensor& tensor) {
  return [tensor](std::int64_t i, std::int64_t j) -> float& {
    return *tensor[i][j].data_ptr<float>();
  };
}

}  // namespace

TEST_CASE("tensors of torch are reduced and gathered in both orders") {
  const torch::Tensor rows = torch::empty({3, 4}), columns = torch::empty({4, 3}).t();
  rankmesh_test::check_sums(rows, at_of_tensor(rows), 3, 4);
  rankmesh_test::check_sums(columns, at_of_tensor(columns), 3, 4);
  const auto at = [](torch::Tensor& tensor, std::int64_t i, std::int64_t j) -> float& {
    return at_of_tensor(tensor)(i, j);
  };
  rankmesh_test::check_blocks(
      [](std::int64_t r, std::int64_t c) {
        return torch::empty({r, c});
      },
      at);
  rankmesh_test::check_blocks(
      [](std::int64_t r, std::int64_t c) {
        return torch::empty({c, r}).t();
      },
      at);
}

TEST_CASE("all types of torch that rankmesh has") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  for (const auto type : {torch::kInt8, torch::kUInt8, torch::kInt16, torch::kInt32, torch::kInt64,
                          torch::kFloat16, torch::kBFloat16, torch::kFloat32, torch::kFloat64}) {
    const torch::Tensor tensor = torch::ones({5}, type);
    dp.all_reduce(tensor);
    CHECK(tensor[4].item<double>() == size());
  }
  CHECK_THROWS_WITH_AS(dp.broadcast(torch::ones({2}, torch::kBool), 0),
                       doctest::Contains("a tensor of Bool"), UsageError);
  CHECK_THROWS_WITH_AS(dp.all_reduce(torch::empty({2}, torch::kMeta)),
                       doctest::Contains("a tensor on meta"), UsageError);
  CHECK_THROWS_AS(dp.all_reduce(torch::ones({2}), torch::ones({2}, torch::kFloat64)), UsageError);
  mesh.close();
}

TEST_CASE("gradients, parts of tensors and shared storage") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  torch::nn::Linear layer{4, 2};
  layer->forward(torch::ones({3, 4})).sum().backward();
  dp.all_reduce(layer->weight.grad(), ReduceOp::avg);
  CHECK(layer->weight.grad()[0][0].item<float>() == 3);
  const torch::Tensor matrix = torch::ones({3, 4});
  dp.all_reduce(matrix[1]);
  CHECK(matrix[1][3].item<float>() == static_cast<float>(size()));
  CHECK(matrix[0][3].item<float>() == 1);
  CHECK_THROWS_AS(dp.all_reduce(matrix.narrow(1, 0, 2)), UsageError);
  CHECK_THROWS_AS(dp.all_reduce(torch::ones({1}).expand({4})), UsageError);
  // The operation keeps the storage.
  dp.all_reduce_async(torch::ones({1000})).wait();
  mesh.close();
}

TEST_CASE("a redistribution moves parts of tensors") {
  const torch::Tensor source = torch::zeros({size() + 1, 3}), target = torch::zeros({size(), 2});
  const torch::Tensor row = source.t().narrow(0, 1, 1).narrow(1, 1, size());
  const torch::Tensor column = target.narrow(1, 1, 1);
  rankmesh_test::check_move(row, at_of_tensor(row), column, at_of_tensor(column));
}
