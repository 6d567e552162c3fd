// SPDX-License-Identifier: BSD-3-Clause
// waits_job stall|silent|killed|unopened: a job in which the last rank leaves the others waiting.
// For tests/mesh/waits, which looks at the output.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const mpi::Environment environment{argc, argv};
  MeshOptions options;
  options.routes = "*.*:host=shm";
  if (mode == "silent") options.deadline = Deadline::Duration{0.5};
  if (mode == "unopened") {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) std::this_thread::sleep_for(std::chrono::milliseconds{1800});
  }
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  mesh["tp"].barrier();
  if (mode == "unopened") {
    mesh.close();
    return 0;
  }
  const bool is_last = mesh.rank().value() == mesh.size() - 1;
  // The others wait in the barrier for less than twice the stall time of 0.5 s.
  if (mode == "stall") {
    if (is_last) std::this_thread::sleep_for(std::chrono::milliseconds{850});
    mesh["tp"].barrier();
    mesh.close();
    return 0;
  }
  if (is_last && mode == "killed") std::raise(SIGKILL);
  if (is_last) std::this_thread::sleep_for(std::chrono::seconds{2});
  if (!is_last) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      mesh["tp"].barrier();
      std::printf("the barrier ended\n");
    } catch (const TimeoutError& error) {
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      const char* const type =
          dynamic_cast<const PeerError*>(&error) != nullptr ? "PeerError" : "TimeoutError";
      std::printf("after %.1f s: %s: %s\n", seconds.count(), type, error.message().c_str());
    }
  }
  std::fflush(stdout);
  if (mode == "killed") {
    // MPI_Finalize would wait for the rank that is gone.
    std::this_thread::sleep_for(std::chrono::seconds{1});
    _exit(0);
  }
  std::this_thread::sleep_for(std::chrono::seconds{is_last ? 0 : 1});
  _exit(0);
}
