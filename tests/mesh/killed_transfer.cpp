// SPDX-License-Identifier: BSD-3-Clause
// killed_transfer RANK SHAPE: a job that moves tensors until the rank with this number is killed.
// The other ranks print the error, and whether their sources are unchanged.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;
using namespace rankmesh::exchange;

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const auto from =
      TensorPlacement::parse(fmt::format("[{}] f32 @ tp={} : (tp, _)", argv[2], mesh.size()));
  const auto to =
      TensorPlacement::parse(fmt::format("[{}] f32 @ tp={} : (_, tp)", argv[2], mesh.size()));
  Redistribution move{mesh["tp"], plan_transfer(from, to), {.memory = 65536}};
  std::vector<float> in(static_cast<std::size_t>(from.local_count(mesh.rank())), 1.0F);
  std::vector<float> out(static_cast<std::size_t>(to.local_count(mesh.rank())));
  try {
    for (int i = 0;; ++i) {
      Work work = move.start(in, out);
      if (i == 3 && mesh.rank() == Rank{std::atoi(argv[1])}) std::raise(SIGKILL);
      work.wait();
    }
  } catch (const PeerError& error) {
    const bool is_unchanged = std::ranges::all_of(in, [](float value) { return value == 1.0F; });
    std::printf("PeerError, the source is %s: %s\n", is_unchanged ? "unchanged" : "changed",
                error.message().c_str());
  }
  std::fflush(stdout);
  // MPI_Finalize would wait for the rank that is gone, and the others need time to print.
  ::sleep(1);
  ::_exit(0);
}
