// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/sharded.md: a model without layers that learns, whose gradients are 1.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace {

constexpr int layers = 3, steps = 2;
double sum_of_weights = 0;

void forward(int, std::span<const float> weights) {
  for (const float w : weights) sum_of_weights += w;
}
void backward(int, std::span<const float> weights, std::span<float> gradient) {
  REQUIRE(weights.size() == gradient.size());
  for (float& g : gradient) g += 1;
}
void optimize(std::span<float> weights, std::span<const float> gradient,
              std::span<float> momentum) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    momentum[i] += gradient[i];
    weights[i] -= momentum[i];
  }
}

}  // namespace

TEST_CASE("sharded: training") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const std::vector<int> sizes{5, 8, 2};
  std::vector<std::vector<float>> initial;
  for (const int n : sizes) initial.emplace_back(n, 10.0F);
  for (const int stage : {1, 2, 3}) {
    sum_of_weights = 0;
    // snippet: train
    CHECK(sum_of_weights == 15 * (10 + 9));
    for (const float w : weights.gather(1)) CHECK(w == 10 - 1 - 2);
  }
  mesh.close();
}
