// SPDX-License-Identifier: BSD-3-Clause
// save_numbers FOLDER: a job that saves a checkpoint of two tensors, for readers in other
// languages.
#include <cstddef>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;
using namespace rankmesh::exchange;

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const auto rows =
      TensorPlacement::parse(fmt::format("[10,3] f32 @ tp={} : (tp, _)", mesh.size()));
  const auto all = TensorPlacement::parse(fmt::format("[4] i64 @ tp={} : (_)", mesh.size()));
  std::vector<float> mine(static_cast<std::size_t>(rows.local_count(mesh.rank())));
  const auto runs = rows.runs(mesh.rank(), 0);
  const std::int64_t first = runs.empty() ? 0 : runs.front().global * 3;
  std::iota(mine.begin(), mine.end(), static_cast<float>(first));
  const std::vector<std::int64_t> numbers{1, 20, 300, 4000};
  save_checkpoint(mesh["tp"], argv[1], "step",
                  std::vector<SavedTensor>{{"rows", rows, mine}, {"numbers", all, numbers}});
  mesh.close();
}
