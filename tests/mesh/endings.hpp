// SPDX-License-Identifier: BSD-3-Clause
// What the programs of `endings` share.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>

#include "rankmesh/rankmesh.hpp"
#include "rankmesh/run.hpp"

namespace endings {

using namespace rankmesh;

inline int argument_count = 0;
inline char** arguments = nullptr;

struct World {
  int rank = 0, size = 0;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  [[nodiscard]] bool is_last() const { return rank == size - 1; }
};

inline Mesh open_mesh(const char* routes = "", std::optional<double> deadline = {},
                      bool is_checked = false) {
  MeshOptions options;
  options.check = is_checked;
  options.devices = DeviceUse::off;
  options.routes = routes;
  if (deadline) options.deadline = Deadline::Duration{*deadline};
  return Mesh{MPI_COMM_WORLD, "tp=auto", options};
}

inline void sum(Mesh& mesh) {
  std::vector<float> values(100, 1);
  mesh["tp"].all_reduce(values);
}

// One rank does not come: the others find that out in an operation that MPI carries.
inline void time_out(const World& world) {
  Mesh mesh = open_mesh("*.*:host=mpi", 1.0);
  sum(mesh);
  if (world.is_last()) std::this_thread::sleep_for(std::chrono::seconds{30});
  sum(mesh);
}

// The last rank fails while the others wait for it, without a deadline.
inline void fail_alone(const World& world) {
  Mesh mesh = open_mesh();
  sum(mesh);
  if (world.is_last()) throw std::runtime_error{"the last rank fails"};
  sum(mesh);
}

// Forks a child process and waits for its end. Returns false in the child.
inline bool is_parent_after(const World& world) {
  const pid_t child = fork();
  if (child == 0) return false;
  waitpid(child, nullptr, 0);
  // The other ranks wait meanwhile, and look whether this rank has left.
  if (world.is_last()) std::this_thread::sleep_for(std::chrono::milliseconds{300});
  return true;
}

// The child leaves all functions, and so destroys its copies of the mesh and the environment.
inline void return_in_child(const World& world) {
  Mesh mesh = open_mesh();
  sum(mesh);
  if (!is_parent_after(world)) return;
  sum(mesh);
  mesh.close();
}

// Starts a thread that waits for input that never comes, and holds the lock of stdin.
inline void read_stdin() {
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) < 0) std::_Exit(98);
  std::thread{[] { std::getchar(); }}.detach();
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
}

inline int handle(const std::exception& error) {
  std::fprintf(stderr, "handled: %s\n", error.what());
  return 3;
}

inline int environment_outside(const std::function<void(const World&)>& action) {
  const mpi::Environment environment{argument_count, arguments};
  try {
    action(World{});
    return 0;
  } catch (const std::exception& error) {
    return handle(error);
  }
}

inline int environment_inside(const std::function<void(const World&)>& action) {
  try {
    const mpi::Environment environment{argument_count, arguments};
    action(World{});
    return 0;
  } catch (const std::exception& error) {
    return handle(error);
  }
}

inline int unprotected(const std::function<void(const World&)>& action) {
  const mpi::Environment environment{argument_count, arguments};
  action(World{});
  return 0;
}

template <class F>
int with_run(F f) {
  return run(argument_count, arguments, f);
}

using Modes = std::map<std::string, std::function<int()>>;

// Programs that fail, by their names.
const Modes& failing_modes();

}  // namespace endings
