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
//   circle    ranks 0 to 2 open a second mesh, while rank 3 waits for them in the first one
//   barrier   rank 0 is in a barrier of the mesh, the others are in MPI_Barrier of the program
//   tag       rank 0 waits for a message of rank 1, which computes for ever
//   move      rank 3 computes for ever, while the others move a tensor
//   save      rank 3 computes for ever, while the others save a checkpoint
//   fine      nothing hangs: the job goes on for ten seconds and ends
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/exchange/redistribution.hpp"
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

void move(GroupCoordinator& world, bool has_started) {
  const auto from = TensorPlacement::parse("[1024] f32 @ x=4 : (x)");
  const auto to = TensorPlacement::parse("[1024] f32 @ x=4 : (_)");
  exchange::Redistribution mover{world, plan_transfer(from, to)};
  std::vector<float> target(1024);
  if (has_started) mover.start(std::span{gradients}.first(256), target).wait();
}

void save(GroupCoordinator& world) {
  const auto place = TensorPlacement::parse("[1024] f32 @ x=4 : (_)");
  const exchange::SavedTensor tensor{.name = "w", .place = place, .source = gradients};
  exchange::save_checkpoint(world, "checkpoints", "step 3", {&tensor, 1});
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
  if ((reason == "second" && rank == 2) || (reason == "circle" && rank != 3))
    Mesh{MPI_COMM_WORLD, "tp=4"}.close();
  if (reason == "barrier") rank == 0 ? mesh["world"].barrier() : (void)MPI_Barrier(MPI_COMM_WORLD);
  if (reason == "tag" && rank == 0)
    mesh["tp"].recv(std::span{gradients}.first(4), RankInGroup{1}, 23);
  if (reason == "move") move(mesh["world"], rank != 3);
  if (reason == "save" && rank != 3) save(mesh["world"]);
  const volatile bool computes =
      (reason == "loop" && rank == 2) || (reason == "new_group" && rank == 3) ||
      (reason == "second" && rank == 0) || (reason == "tag" && rank == 1) ||
      ((reason == "move" || reason == "save") && rank == 3);
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
  if (reason == "barrier" || reason == "move" || reason == "save") (void)mesh["world"];
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
