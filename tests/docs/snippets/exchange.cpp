// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/exchange.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace rankmesh::exchange {}
namespace exchange = rankmesh::exchange;

namespace {

// The step of a serving engine.
struct Step {
  int number = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(number);
  }
};

struct Layer {
  std::vector<float> gradient;
  void backward() { gradient.assign(100, 1); }
};

struct Model {
  long tokens = 0;
  void run(const std::vector<int>& batch, std::int64_t padded, std::int32_t) {
    CHECK(std::ssize(batch) <= padded);
    tokens += std::ssize(batch);
  }
};

std::vector<int> next_batch(std::vector<int>& queue) {
  const std::size_t n = std::min<std::size_t>(queue.size(), 5);
  std::vector<int> batch(queue.end() - static_cast<std::ptrdiff_t>(n), queue.end());
  queue.resize(queue.size() - n);
  return batch;
}

// A mesh with its coordinators. Each of the dimensions gets all ranks once.
struct Ranks {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "tp=auto | pp=auto | dp=auto"};
  rankmesh::GroupCoordinator& tp = mesh["tp"];
  rankmesh::GroupCoordinator& pp = mesh["pp"];
  rankmesh::GroupCoordinator& dp = mesh["dp"];
};

}  // namespace

TEST_CASE("exchange: objects") {
  Ranks ranks;
  auto& [mesh, tp, pp, dp] = ranks;
  // snippet: objects
  CHECK(word == "ready");
  CHECK(std::ssize(all) == (dp.is_first() ? dp.size() : 0));
  CHECK(std::ssize(every) == dp.size());
  mesh.close();
}

TEST_CASE("exchange: tensors by name") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD,
                      rankmesh_test::size() % 2 == 0 ? "pp=auto,tp=2" : "pp=auto,tp=1"};
  auto& tp = mesh["tp"];
  auto& pp = mesh["pp"];
  const std::int64_t tokens = 300;
  const std::int64_t width = 40;
  std::vector<float> hidden(12000, pp.is_first() ? 1.0F : 0.0F);
  const rankmesh::StreamRef stream{};
  // snippet: tensors
  CHECK(arrived.front() == 1);
  CHECK(arrived.back() == 1);
  mesh.close();
}

TEST_CASE("exchange: pipeline stages") {
  Ranks ranks;
  auto& [mesh, tp, pp, dp] = ranks;
  const rankmesh::StreamRef stream{};
  const auto mine = static_cast<float>(pp.rank_in_group().value());
  std::vector<float> activations(20000, mine), next_activations(20000, -1);
  std::vector<float> a(5, mine), b(5, -1), c(7, mine), d(7, -1);
  // snippet: stages
  CHECK(next_activations.back() == mine - 1);
  CHECK(b.back() == mine - 1);
  CHECK(d.back() == (pp.is_last() ? -1 : mine + 1));
  mesh.close();
}

TEST_CASE("exchange: halos") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, rankmesh_test::size() % 2 == 0 ? "y=auto,x=2" : "y=auto,x=1"};
  const std::size_t ny = 3;
  const std::size_t nx = 4;
  std::vector<float> cells((ny + 2) * (nx + 2), static_cast<float>(mesh.rank().value()));
  const auto at = [&](std::size_t i, std::size_t j) { return cells[i * (nx + 2) + j]; };
  // snippet: halo
  const auto& y = mesh["y"];
  const auto& x = mesh["x"];
  const std::int64_t mine = mesh.rank().value();
  const std::int64_t above = y.is_first() ? 0 : x.size();
  const std::int64_t after = x.is_last() ? 0 : 1;
  CHECK(at(0, 1) == mine - above);
  CHECK(at(ny + 1, nx) == (y.is_last() ? mine : mine + x.size()));
  CHECK(at(1, 0) == (x.is_first() ? mine : mine - 1));
  CHECK(at(ny, nx + 1) == mine + after);
  CHECK(at(0, nx + 1) == mine - above + after);  // a corner
  mesh.close();
}

TEST_CASE("exchange: buckets") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const rankmesh::StreamRef stream{};
  std::vector<Layer> layers(3);
  // snippet: bucket
  for (const Layer& layer : layers) CHECK(layer.gradient.back() == 1);
  mesh.close();
}

TEST_CASE("exchange: lockstep") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const std::int32_t full_graph = 2;
  const std::vector<int> dummy(8);
  std::vector<int> queue(7 * mesh.rank().to_size() + 1);
  Model model;
  // snippet: lockstep
  CHECK(queue.empty());
  CHECK(model.tokens > 0);
  mesh.close();
}

TEST_CASE("exchange: the control queue") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  Step step{tp.is_first() ? 7 : 0};
  // snippet: control_queue
  CHECK(step.number == 7);
  mesh.close();
}

TEST_CASE("exchange: buckets that give each member its part") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  rankmesh::GroupCoordinator& dp = mesh["dp"];
  const std::vector<float> gradient(7, 1);
  // snippet: divided_bucket
  CHECK(part == std::vector<float>(part.size(), 1));
  mesh.close();
}
