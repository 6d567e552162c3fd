// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/experts.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace {
constexpr std::int64_t H = 4;
// An expert multiplies by its number.
void run_expert(std::int64_t expert, float* rows, std::int64_t count) {
  for (std::int64_t i = 0; i < count * H; ++i) rows[i] *= static_cast<float>(expert);
}
}  // namespace

TEST_CASE("experts: a step") {
  SKIP_UNLESS(64 % rankmesh_test::size() == 0, "64 experts must be divisible by the ranks");
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  const std::vector<std::int32_t> ids{0, 63, 5, -1, 7, 9};  // of three tokens
  const std::vector<float> tokens(3 * H, 1);
  const std::vector<float> weights(6, 0.5F);
  std::vector<float> out(3 * H);
  // snippet: step
  CHECK(out[0] == 31.5F);
  CHECK(out[H] == 2.5F);
  CHECK(out[2 * H] == 8.0F);
  mesh.close();
}
