// SPDX-License-Identifier: BSD-3-Clause
// killed RANK: a job that uses shared memory until the rank with this number is killed.
// Every rank prints its process id first.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  MeshOptions options;
  options.routes = "*.*:host=shm";
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::printf("process %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  const auto values = mesh.allocate_symmetric<float>(1 << 20, {"tp"});
  for (int i = 0;; ++i) {
    mesh["tp"].all_reduce(values);
    (void)mesh["tp"].all_reduce(std::vector<int>(1000, 1));
    (void)mesh["tp"].all_gather_v(std::vector<int>(mesh.rank() == Rank{1} ? 100000 : 10));
    if (i == 20 && mesh.rank() == Rank{std::atoi(argv[1])}) std::raise(SIGKILL);
  }
}
