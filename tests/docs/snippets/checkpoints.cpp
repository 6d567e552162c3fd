// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/checkpoints.md.
#include <rankmesh/base/narrow_float.hpp>
#include <rankmesh/rankmesh.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("checkpoints: training and serving") {
  NEEDS_RANKS(4);
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "world=auto"};
  std::vector<int> number{static_cast<int>(::getpid())};
  mesh["world"].broadcast(number, rankmesh::RankInGroup{0});
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("rankmesh-docs-" + std::to_string(number[0])))
          .string();
  const auto train = [](auto& values) { std::ranges::fill(values, 1.5F); };
  // snippet: checkpoint
  CHECK(std::ranges::all_of(served, [](BFloat16 value) { return value == BFloat16{1.5F}; }));
  mesh["world"].barrier();
  if (mesh["world"].is_first()) std::filesystem::remove_all(folder);
  mesh.close();
}
