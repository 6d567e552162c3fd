// SPDX-License-Identifier: BSD-3-Clause
// Two models share one world. Even ranks run one model, odd ranks the other. Each has its
// own groups.
//
//   mpirun -n 8 two_models
#include <cstdio>
#include <vector>

#include "rankmesh/rankmesh.hpp"

namespace {

void run_both() {
  rankmesh::Mesh world{MPI_COMM_WORLD, "model=auto"};
  const std::int64_t rank = world.rank().value();
  const bool is_even = rank % 2 == 0;

  // Each model has its own communicator and a mesh on it. The ranks of a mesh begin at 0.
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, is_even ? 0 : 1, static_cast<int>(rank), &mine);
  rankmesh::Mesh model{mine, is_even ? "dp=auto,tp=1" : "pp=auto"};
  auto& group = model[is_even ? "dp" : "pp"];

  // The models work independently: one computes an average, the other a sum along its stages.
  std::vector<double> value{static_cast<double>(rank)};
  if (is_even) {
    group.all_reduce(value, rankmesh::ReduceOp::avg);
  } else {
    if (!group.is_first()) {
      std::vector<double> received{0};
      group.recv(received, rankmesh::prev);
      value[0] += received[0];
    }
    if (!group.is_last()) group.send(value, rankmesh::next);
  }

  // A group of the world connects the first rank of one model with the last stage of the other.
  const std::int64_t last_odd = world.size() % 2 == 0 ? world.size() - 1 : world.size() - 2;
  if (world.size() > 1 && (rank == 0 || rank == last_odd)) {
    const std::vector<rankmesh::Rank> ends{0, last_odd};
    const auto ends_group = world.new_group(ends, "the two models");
    std::vector<double> both(2);
    ends_group->all_gather(value, both);
    if (rank == 0)
      std::printf("mean of the even ranks %.1f, sum of the odd ranks %.1f\n", both[0], both[1]);
  }
  model.close();
  world.close();
  MPI_Comm_free(&mine);
}

}  // namespace

int main(int argc, char** argv) { return rankmesh::run(argc, argv, run_both); }
