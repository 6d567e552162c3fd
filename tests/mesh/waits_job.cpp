// SPDX-License-Identifier: BSD-3-Clause
// waits_job stall|silent|killed: a job in which the last rank leaves the others waiting. For
// tests/mesh/waits, which looks at the output.
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
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  mesh["tp"].barrier();
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
      std::printf("after %.1f s: %s\n", seconds.count(), error.message().c_str());
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
