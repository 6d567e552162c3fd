// SPDX-License-Identifier: BSD-3-Clause
// hang REASON [FOLDER]: a job of four ranks with the mesh dp=2,tp=2 that trains for two steps and
// hangs in the third one. Every rank prints its process id first. A rank that has hung for a minute
// is ended. The signal SIGUSR1 writes the records into the folder.
//
//   crossed   rank 1 and rank 2 call tp and dp in another order than rank 0 and rank 3
//   skipped   rank 1 leaves an all_reduce of dp out, and closes the mesh
//   stopped   rank 3 stops itself
//   message   rank 0 sends to rank 1, which does not receive
//   loop      rank 2 computes for ever
//   new_group rank 1 creates a group with rank 3, which computes for ever
//   second    rank 2 opens a second mesh, while rank 0 computes for ever
//   fine      nothing hangs: the job goes on for ten seconds and ends
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "rankmesh/record/write.hpp"

using namespace rankmesh;

namespace {

std::vector<float> gradients(1024, 1);

void reduce(Mesh& mesh, const char* group) { mesh[group].all_reduce(gradients); }

void step(Mesh& mesh) {
  reduce(mesh, "tp");
  reduce(mesh, "dp");
}

// The third step.
void hang(Mesh& mesh, const std::string& reason) {
  const std::int64_t rank = mesh.rank().value();
  if (reason == "crossed" && (rank == 1 || rank == 2)) {
    reduce(mesh, "dp");
    reduce(mesh, "tp");
    return;
  }
  if (reason == "skipped" && rank == 1) {
    reduce(mesh, "tp");
    return;
  }
  if (reason == "stopped" && rank == 3) std::raise(SIGSTOP);
  if (reason == "message" && rank == 0)
    mesh["tp"].send(std::vector<float>(1 << 20), RankInGroup{1});
  if (reason == "new_group" && rank == 1)
    (void)mesh.new_group(std::vector{Rank{1}, Rank{3}}, "pair");
  if (reason == "second" && rank == 2) Mesh{MPI_COMM_WORLD, "tp=4"}.close();
  const volatile bool computes = (reason == "loop" && rank == 2) ||
                                 (reason == "new_group" && rank == 3) ||
                                 (reason == "second" && rank == 0);
  while (computes) {
  }
  step(mesh);
}

}  // namespace

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  const std::string reason = argc > 1 ? argv[1] : "fine";
  ::alarm(60);
  if (argc > 2) record::write_on_signal(SIGUSR1, argv[2]);
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=2"};
  std::printf("rank %d is process %d\n", static_cast<int>(mesh.rank().value()),
              static_cast<int>(::getpid()));
  std::fflush(stdout);
  for (int i = 1; i <= 2; ++i) {
    mesh.mark("step " + std::to_string(i));
    step(mesh);
  }
  mesh.mark("step 3");
  hang(mesh, reason);
  for (int i = 0; reason == "fine" && i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    step(mesh);
  }
  mesh.close();
  return 0;
}
