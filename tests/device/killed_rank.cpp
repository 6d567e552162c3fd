// SPDX-License-Identifier: BSD-3-Clause
// killed_rank: ranks move a tensor in device memory again and again, until the last one kills
// itself. Each other rank prints the error of its wait.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;
using device::DeviceBuffer;

namespace {

// Returns the error that ends the transfers of this rank.
std::string move_until_failure(Mesh& mesh) {
  const std::string ranks = std::to_string(mesh.size());
  const auto from = TensorPlacement::parse("[64,48] f32 @ tp=" + ranks + " : (tp, _)");
  const auto to = TensorPlacement::parse("[64,48] f32 @ tp=" + ranks + " : (_, tp)");
  exchange::Redistribution move{mesh["tp"], plan_transfer(from, to), {.kind = MemoryKind::device}};
  const auto count = [&](const TensorPlacement& place) {
    return static_cast<std::size_t>(place.local_count(mesh.rank()));
  };
  const DeviceBuffer<float> in{std::span<const float>{std::vector<float>(count(from), 1.0F)}};
  const DeviceBuffer<float> out{count(to)};
  std::string failure;
  for (int transfer = 0; failure.empty(); ++transfer) {
    if (transfer == 5 && mesh.rank().value() + 1 == mesh.size()) (void)kill(getpid(), SIGKILL);
    try {
      move.start(in.span(), out.span()).wait(Deadline::Duration{2});
    } catch (const Error& error) {
      failure = error.message();
    }
  }
  try {
    (void)move.start(in.span(), out.span());
    failure += "; the group can still be used";
  } catch (const ClosedError&) {
  }
  mesh.abort();
  return failure;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MeshOptions options;
  options.check = false;  // a comparison would find the rank before NCCL's operations begin
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::printf("rank %d: %s\n", static_cast<int>(mesh.rank().value()),
              move_until_failure(mesh).c_str());
  std::fflush(stdout);
  sleep(3);  // the others are not to find that this rank has ended too
  _exit(0);  // MPI cannot end the job as usual without the rank
}
