// Two models share one world: even ranks train one, odd ranks the other, each with its own groups.
//
//   mpirun -n 8 two_models
#include <cstdio>
#include <vector>

#include "rankmesh/rankmesh.hpp"

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  try {
    rankmesh::Mesh world{MPI_COMM_WORLD, "model=auto"};
    const std::int64_t rank = world.rank().value();
    const bool is_even = rank % 2 == 0;

    // Each model has a communicator of its own, and a mesh on it. Its ranks count from 0.
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, is_even ? 0 : 1, static_cast<int>(rank), &mine);
    rankmesh::Mesh model{mine, is_even ? "dp=auto,tp=1" : "pp=auto"};
    auto& group = model[is_even ? "dp" : "pp"];

    // The models work independently: one averages, the other passes a value down its stages.
    std::vector<double> value{static_cast<double>(rank)};
    if (is_even) {
      group.all_reduce(value, rankmesh::ReduceOp::avg);
    } else {
      if (!group.is_first()) {
        std::vector<double> from_before{0};
        group.recv(from_before, rankmesh::prev);
        value[0] += from_before[0];
      }
      if (!group.is_last()) group.send(value, rankmesh::next);
    }

    // The last stage of one and the first rank of the other meet in a group of the world.
    const std::int64_t last_odd = world.size() % 2 == 0 ? world.size() - 1 : world.size() - 2;
    if (world.size() > 1 && (rank == 0 || rank == last_odd)) {
      const std::vector<rankmesh::Rank> ends{0, last_odd};
      const auto meeting = world.new_group(ends, "the two models");
      std::vector<double> both(2);
      meeting->all_gather(value, both);
      if (rank == 0)
        std::printf("mean of the even ranks %.1f, sum of the odd ranks %.1f\n", both[0], both[1]);
    }
    model.close();
    world.close();
    MPI_Comm_free(&mine);
    return 0;
  } catch (const rankmesh::Error& error) {
    std::fprintf(stderr, "two_models: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}
