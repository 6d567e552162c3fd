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
void run_backward(std::int64_t expert, const float* d_rows, float* d_x, std::int64_t count) {
  for (std::int64_t i = 0; i < count * H; ++i) d_x[i] = d_rows[i] * static_cast<float>(expert);
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

TEST_CASE("experts: two parts") {
  SKIP_UNLESS(64 % rankmesh_test::size() == 0, "64 experts must be divisible by the ranks");
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  namespace exchange = rankmesh::exchange;
  exchange::ExpertDispatcher experts{ep, exchange::ExpertMap::contiguous(64, ep.size())};
  struct Part {
    exchange::ExpertRoute route;
    std::vector<double> tokens, rows, weights, out;
  };
  std::vector<Part> part;
  for (const std::int32_t expert : {3, 40}) {
    const std::vector<std::int32_t> ids{expert, 2};
    part.push_back({experts.route(ids, 1),
                    std::vector<double>(2 * H, 1),
                    {},
                    {0.5, 2},
                    std::vector<double>(2 * H)});
    part.back().rows.resize(static_cast<std::size_t>(part.back().route.rows() * H));
  }
  const auto run_experts = [](Part& own) {
    for (std::size_t slot = 0; slot < own.route.counts().size(); ++slot)
      for (std::int64_t i = 0; i < own.route.counts()[slot] * H; ++i)
        own.rows[static_cast<std::size_t>(own.route.offsets()[slot] * H + i)] *=
            own.route.experts()[slot];
  };
  // snippet: overlap
  CHECK(part[0].out[0] == 1.5);
  CHECK(part[1].out[0] == 20);
  CHECK(part[1].out[H] == 4);
  mesh.close();
}

TEST_CASE("experts: the backward pass") {
  SKIP_UNLESS(64 % rankmesh_test::size() == 0, "64 experts must be divisible by the ranks");
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  namespace exchange = rankmesh::exchange;
  exchange::ExpertDispatcher experts{ep, exchange::ExpertMap::contiguous(64, ep.size())};
  const std::vector<std::int32_t> ids{0, 63, 5, -1};  // of two tokens
  const exchange::ExpertRoute route = experts.route(ids, 2);
  const std::vector<float> weights{0.25F, 0.75F, 0.5F, 0.5F};
  const std::vector<float> d_out(2 * H, 1), results(route.rows() * H, 2);
  // snippet: backward
  CHECK(d_weights == std::vector<float>{2 * H, 2 * H, 2 * H, 0});
  CHECK(d_tokens[0] == 0.75F * 63);
  CHECK(d_tokens[H] == 0.5F * 5);
  mesh.close();
}
