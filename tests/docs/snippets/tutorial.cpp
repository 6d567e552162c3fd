// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/tutorial.md.
#include <rankmesh/rankmesh.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace tutorial_two {
#define main two
// snippet: two_ranks
#undef main
}  // namespace tutorial_two

namespace tutorial_train {
// snippet: layer
// snippet: train
#define main program
// snippet: program
#undef main
}  // namespace tutorial_train

TEST_CASE("tutorial: the model has the same loss, however it is divided") {
  rankmesh::Mesh alone{MPI_COMM_SELF, "pp=1,dp=1,tp=1"};
  const double expected = tutorial_train::train(alone, 20);
  CHECK(expected == doctest::Approx(0.818064).epsilon(1e-5));  // as on the page
  CHECK(expected < tutorial_train::train(alone, 1));
  alone.close();
  for (const std::string layout :
       {"pp=auto,dp=1,tp=1", "pp=1,dp=auto,tp=1", "pp=1,dp=1,tp=auto", "pp=2,dp=auto,tp=1",
        "pp=2,dp=1,tp=auto", "pp=1,dp=auto,tp=2", "pp=2,dp=2,tp=auto"}) {
    CAPTURE(layout);
    if (rankmesh_test::size() % 2 != 0 && layout.find('2') != std::string::npos) continue;
    if (rankmesh_test::size() % 4 != 0 && layout.find("2,dp=2") != std::string::npos) continue;
    rankmesh::Mesh mesh{MPI_COMM_WORLD, layout};
    CHECK(tutorial_train::train(mesh, 20) == doctest::Approx(expected).epsilon(1e-9));
    mesh.close();
  }
}

TEST_CASE("tutorial: the programs") {
  std::string layout = "pp=1,dp=1,tp=auto";
  std::string name = "train";
  std::array<char*, 3> arguments{name.data(), layout.data(), nullptr};
  CHECK(tutorial_train::program(2, arguments.data()) == 0);
  if (rankmesh_test::size() == 2) {
    std::array<char*, 2> none{name.data(), nullptr};
    CHECK(tutorial_two::two(1, none.data()) == 0);
  }
}
