// SPDX-License-Identifier: BSD-3-Clause
// waits_job MODE: a job in which the last rank leaves the others waiting. MODE is stall, sink,
// silent, killed, "killed reducing", "killed sending", opening or unopened. For tests/mesh/waits,
// which looks at the output.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

namespace {

int broadcasts_left = 1'000'000;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>{std::chrono::steady_clock::now() - begin}.count();
}

// The last rank fails alone, while the others wait for the shared memory of the node.
int open_in_vain() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) broadcasts_left = 1;  // that of the board
  const auto begin = std::chrono::steady_clock::now();
  try {
    const Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  } catch (const Error& error) {
    std::printf("after %.1f s: %s\n", seconds_since(begin), error.message().c_str());
  }
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds{2});
  _exit(0);
}

}  // namespace

// Replaces MPI's function also for rankmesh.
extern "C" int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                          MPI_Request* request) {
  if (broadcasts_left-- <= 0) return MPI_ERR_OTHER;
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}

namespace {

// The last rank ends after it has told the others where its buffer lies.
[[noreturn]] void end_inside(Mesh& mesh, bool is_last, bool is_message) {
  std::vector<float> values(1 << 20, 1.0F);
  if (is_last) {
    Work work = is_message ? mesh["tp"].send_async(std::span{std::as_const(values)}, 0)
                           : mesh["tp"].all_reduce_async(std::span{values});
    std::raise(SIGKILL);
  }
  try {
    if (is_message)
      mesh["tp"].recv(values, RankInGroup{mesh.size() - 1});
    else
      mesh["tp"].all_reduce(std::span{values});
    std::printf("the operation ended\n");
  } catch (const PeerError& error) {
    std::printf("PeerError: %s\n", error.message().c_str());
  }
  std::fflush(stdout);
  // MPI_Finalize would wait for the rank that is gone.
  std::this_thread::sleep_for(std::chrono::seconds{1});
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const mpi::Environment environment{argc, argv};
  if (mode == "opening") return open_in_vain();
  MeshOptions options;
  options.routes = "*.*:host=shm";
  if (mode == "sink")
    options.log = [](LogLevel, std::string_view) { throw std::runtime_error{"no disk"}; };
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
  if (mode == "stall" || mode == "sink") {
    if (is_last) std::this_thread::sleep_for(std::chrono::milliseconds{850});
    mesh["tp"].barrier();
    mesh.close();
    return 0;
  }
  if (is_last && mode == "killed") std::raise(SIGKILL);
  if (mode == "killed reducing") end_inside(mesh, is_last, false);
  if (mode == "killed sending") end_inside(mesh, is_last, true);
  if (is_last) std::this_thread::sleep_for(std::chrono::seconds{2});
  if (!is_last) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      mesh["tp"].barrier();
      std::printf("the barrier ended\n");
    } catch (const TimeoutError& error) {
      const char* const type =
          dynamic_cast<const PeerError*>(&error) != nullptr ? "PeerError" : "TimeoutError";
      std::printf("after %.1f s: %s: %s\n", seconds_since(begin), type, error.message().c_str());
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
