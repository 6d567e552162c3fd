// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/surviving.md. tests/survive has the jobs in which ranks die.
#include <rankmesh/exchange/kept_tensors.hpp>
#include <rankmesh/exchange/sharded_buffer.hpp>
#include <rankmesh/rankmesh.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("surviving: the loop") {
  const std::int64_t steps = 3;
  const std::vector<std::int64_t> sizes{10, 3};
  int trained = 0;
  const auto train = [&](rankmesh::Mesh& mesh, auto& weights, std::int64_t) {
    mesh["world"].barrier();
    weights.mine(0)[0] += 1;
    weights.changed();
    ++trained;
  };
  const auto initialise = [](auto& weights) { weights.mine(0)[0] = 0; };
  const auto report = [](const std::string&) {};
  // snippet: loop
  CHECK(trained == 3);
  CHECK(kept.bytes() > 0);
}

TEST_CASE("surviving: spare ranks") {
  using namespace rankmesh;
  // snippet: spares
  CHECK(mesh.has_value() == (rankmesh_test::rank() < 2));
  if (mesh) mesh->close();
}

TEST_CASE("surviving: what a spare rank may not call, and meshes without spare ranks") {
  using namespace rankmesh;
  const MeshOptions options{.survive = Survival{.policy = ShrinkPolicy::spare}};
  CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "dp=auto", options}), UsageError);
  CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "dp=2"}), SpecError);
  Mesh mesh{MPI_COMM_WORLD, "dp=2", options};
  CHECK(mesh.is_spare() == (rankmesh_test::rank() >= 2));
  CHECK(mesh.has("dp") == !mesh.is_spare());
  if (mesh.is_spare()) {
    CHECK_THROWS_AS(mesh.commit(0), UsageError);
    CHECK_THROWS_AS(mesh.close(), UsageError);
    CHECK_THROWS_AS(mesh["dp"], NotMember);
    CHECK(!mesh.next());
    CHECK(mesh.is_closed());
  } else {
    mesh.commit(0);
    CHECK(mesh.placement().world_size() == 2);
    CHECK_THROWS_AS(mesh.next(), UsageError);
    mesh.close();
  }
}

TEST_CASE("surviving: a planned stop") {
  using namespace rankmesh;
  const std::int64_t steps = 5;
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", MeshOptions{.survive = Survival{}}};
  const auto train = [](Mesh& of, std::int64_t step) {
    if (step == 1 && of.rank() == Rank{0}) (void)std::raise(SIGUSR1);
  };
  std::vector<std::int64_t> saved;
  const auto save = [&](Mesh&, std::int64_t step) { saved.push_back(step); };
  // snippet: stop
  CHECK(saved == std::vector<std::int64_t>{1});
}

TEST_CASE("surviving: a checkpoint in the place of lost elements") {
  using namespace rankmesh;
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", MeshOptions{.survive = Survival{}}};
  auto& dp = mesh["dp"];
  exchange::ShardedBuffer<float> weights{dp, {10, 3}};
  exchange::KeptTensors kept;
  mesh.commit(7);  // nothing is kept
  std::string reported;
  const auto report = [&](const std::string& text) { reported = text; };
  const auto load_checkpoint = [](auto&) { return 5; };
  // snippet: checkpoint
  CHECK_CONTAINS(reported, "no rank of 'dp' has kept step 7");
  CHECK(mesh.step() == 5);
  mesh.commit(6);
  mesh.close();
}

TEST_CASE("surviving: replicas") {
  using namespace rankmesh;
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  const std::int64_t step = 0;
  exchange::KeptTensors kept;
  std::vector<float> weights(4096 * 1024, 2.5F);
  // snippet: replicas
  CHECK(std::ranges::count(weights, 2.5F) == std::ssize(weights));
  kept.keep(dp, step + 1, {{"weights", share, own}});
  std::ranges::fill(weights, 0.0F);
  kept.restore(dp, step + 1, {{"weights", whole, weights}});
  CHECK(std::ranges::count(weights, 2.5F) == std::ssize(weights));
  mesh.close();
}
