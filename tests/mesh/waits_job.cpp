// SPDX-License-Identifier: BSD-3-Clause
// waits_job MODE: a job in which the last rank leaves the others waiting. MODE is stall, sink,
// silent, opening, "opening stopped", "opening killed", unopened, killed, "killed reducing",
// "killed sending", "killed sending much", "killed receiving" or "killed receiving much". For
// tests/mesh/waits, which looks at the output.
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

int receives_left = 1'000'000;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>{std::chrono::steady_clock::now() - begin}.count();
}

// Takes so long while the machine runs: where it stands still for seconds, the others do not see
// that they wait either.
void stay_away(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds step{100};
  for (; time > std::chrono::milliseconds{0}; time -= step) std::this_thread::sleep_for(step);
}

// The last rank fails alone, while the others wait for the shared memory of the node.
int open_in_vain() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) receives_left = 0;  // from the first rank: where the memory is
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

// The last rank does not come to the opening of the mesh: it is stopped, or its process has ended.
int open_without(const std::string& mode) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) std::raise(mode == "opening stopped" ? SIGSTOP : SIGKILL);
  try {
    const Mesh mesh{MPI_COMM_WORLD, "tp=auto", {.timeout = Deadline::Duration{2}}};
  } catch (const Error& error) {
    std::printf("%s\n", error.message().c_str());
  }
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds{1});
  _exit(1);  // the launcher then ends the rank that is stopped
}

}  // namespace

// Replaces MPI's function also for rankmesh.
extern "C" int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Status* status) {
  if (receives_left-- == 0) return MPI_ERR_OTHER;
  return PMPI_Recv(data, count, type, from, tag, comm, status);
}

namespace {

// Prints how an operation of the other ranks ends after the last rank was killed.
template <class Action>
[[noreturn]] void end_alone(Action&& action) {
  try {
    action();
    std::printf("the operation ended\n");
  } catch (const PeerError& error) {
    std::printf("PeerError: %s\n", error.message().c_str());
  }
  std::fflush(stdout);
  // MPI_Finalize would wait for the rank that is gone.
  std::this_thread::sleep_for(std::chrono::seconds{1});
  _exit(0);
}

// The last rank ends after it has told the others where its buffer lies.
[[noreturn]] void end_in_reduction(Mesh& mesh, bool is_last) {
  const std::size_t count = 1 << 18;
  const std::vector<float> values(count * static_cast<std::size_t>(mesh.size()), 1.0F);
  std::vector<float> sums(count);
  Work work;
  if (is_last) work = mesh["tp"].reduce_scatter_async(std::span{values}, std::span{sums});
  MPI_Barrier(MPI_COMM_WORLD);  // it begins before the others
  if (is_last) std::raise(SIGKILL);
  end_alone([&] { mesh["tp"].reduce_scatter(values, sums); });
}

// The last rank ends before it sends or receives.
[[noreturn]] void end_before_messages(Mesh& mesh, bool is_last, bool receives, std::size_t count) {
  std::vector<float> values(count, 1.0F);
  if (is_last) std::raise(SIGKILL);
  end_alone([&] {
    if (!receives) mesh["tp"].recv(values, RankInGroup{mesh.size() - 1});
    for (int i = 0; i < 40; ++i)  // more small ones than there is space for
      mesh["tp"].send(std::as_const(values), RankInGroup{mesh.size() - 1});
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const mpi::Environment environment{argc, argv};
  if (mode == "opening") return open_in_vain();
  if (mode.starts_with("opening ")) return open_without(mode);
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
    if (rank == size - 1) stay_away(std::chrono::milliseconds{2400});
  }
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  mesh["tp"].barrier();
  if (mode == "unopened") {
    mesh.close();
    return 0;
  }
  const bool is_last = mesh.rank().value() == mesh.size() - 1;
  // The others wait in the barrier for longer than the stall time of 3 s, and less than twice this.
  if (mode == "stall" || mode == "sink") {
    if (is_last) stay_away(std::chrono::milliseconds{4300});
    mesh["tp"].barrier();
    mesh.close();
    return 0;
  }
  if (is_last && mode == "killed") std::raise(SIGKILL);
  if (mode == "killed reducing") end_in_reduction(mesh, is_last);
  if (mode == "killed sending") end_before_messages(mesh, is_last, false, 1000);
  if (mode == "killed sending much") end_before_messages(mesh, is_last, false, 100'000);
  if (mode == "killed receiving") end_before_messages(mesh, is_last, true, 1000);
  if (mode == "killed receiving much") end_before_messages(mesh, is_last, true, 100'000);
  if (is_last) std::this_thread::sleep_for(std::chrono::seconds{3});
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
