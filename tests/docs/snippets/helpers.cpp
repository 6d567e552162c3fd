// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/helpers.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("helpers: lines that say where they come from") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=1"};
  const double loss = 0.5;
  // snippet: print
  CHECK(mesh.size() == rankmesh_test::size());
  mesh.close();
}

TEST_CASE("helpers: random numbers") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "pp=1,dp=auto,tp=1"};
  // snippet: seed
  CHECK(initial() != dropout());
  mesh.close();
}

TEST_CASE("helpers: equal replicas") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=1"};
  std::vector<float> weights(64, static_cast<float>(mesh.rank().value()));
  // snippet: replicas
  CHECK(weights.back() == 0);
  mesh.close();
}

TEST_CASE("helpers: the norm of all gradients") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "pp=1,tp=auto"};
  const std::vector<std::vector<float>> weight_gradients(2, std::vector<float>(8, 1));
  const std::vector<float> bias_gradient(9, 1);
  // snippet: norm
  CHECK(length == doctest::Approx(std::sqrt(16.0 * static_cast<double>(mesh.size()) + 9)));
  CHECK(scale == doctest::Approx(1 / length));
  mesh.close();
}

TEST_CASE("helpers: times") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const auto compute = [] {};
  // snippet: times
  CHECK(times.least <= times.most);
  mesh.close();
}
