// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/sharded.md.
#include <rankmesh/rankmesh.hpp>

#include <algorithm>
#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("sharded: training with each stage") {
  const std::vector<std::int64_t> sizes{5, 8, 3};
  const int layers = 3;
  const int steps = 2;
  for (int stage = 1; stage <= 3; ++stage) {
    CAPTURE(stage);
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
    std::vector<std::vector<float>> initial;
    for (const auto size : sizes) initial.emplace_back(size, 1.0F);
    // Each step lowers every weight by 1, the average of the members' gradients.
    std::vector<float> seen;
    const auto forward = [&](int, auto whole) { seen.push_back(whole[whole.size() - 1]); };
    const auto backward = [](int, auto, auto gradient) {
      for (auto& value : gradient) value += 1;
    };
    const auto optimize = [](auto mine, auto gradient, auto) {
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] -= gradient[i];
    };
    // snippet: train
    CHECK(seen == std::vector<float>{1, 1, 1, 0, 0, 0});
    mesh.close();
  }
}
