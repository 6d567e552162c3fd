// SPDX-License-Identifier: BSD-3-Clause
// endings MODE: programs that end in the ways in which programs end. Every rank prints its process
// id first. The script `endings` runs all modes and has the expected status and text of each.
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

using namespace rankmesh;

namespace {

int argument_count = 0;
char** arguments = nullptr;

struct World {
  int rank = 0, size = 0;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  [[nodiscard]] bool is_last() const { return rank == size - 1; }
};

Mesh open_mesh(const char* routes = "", std::optional<double> deadline = {}) {
  MeshOptions options;
  options.devices = DeviceUse::off;
  options.routes = routes;
  if (deadline) options.deadline = Deadline::Duration{*deadline};
  return Mesh{MPI_COMM_WORLD, "tp=auto", options};
}

void sum(Mesh& mesh) {
  std::vector<float> values(100, 1);
  mesh["tp"].all_reduce(values);
}

// One rank does not come: the others find that out in an operation that MPI carries.
void time_out(const World& world) {
  Mesh mesh = open_mesh("*.*:host=mpi", 1.0);
  sum(mesh);
  if (world.is_last()) std::this_thread::sleep_for(std::chrono::seconds{30});
  sum(mesh);
}

// The last rank fails while the others wait for it, without a deadline.
void fail_alone(const World& world) {
  Mesh mesh = open_mesh();
  sum(mesh);
  if (world.is_last()) throw std::runtime_error{"the last rank fails"};
  sum(mesh);
}

// Forks a child process and waits for its end. Returns false in the child.
bool is_parent_after(const World& world) {
  const pid_t child = fork();
  if (child == 0) return false;
  waitpid(child, nullptr, 0);
  // The other ranks wait meanwhile, and look whether this rank has left.
  if (world.is_last()) std::this_thread::sleep_for(std::chrono::milliseconds{300});
  return true;
}

// The child leaves all functions, and so destroys its copies of the mesh and the environment.
void return_in_child(const World& world) {
  Mesh mesh = open_mesh();
  sum(mesh);
  if (!is_parent_after(world)) return;
  sum(mesh);
  mesh.close();
}

// Starts a thread that waits for input that never comes, and holds the lock of stdin.
void read_stdin() {
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) < 0) std::_Exit(98);
  std::thread{[] { std::getchar(); }}.detach();
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
}

int handle(const std::exception& error) {
  std::fprintf(stderr, "handled: %s\n", error.what());
  return 3;
}

int environment_outside(const std::function<void(const World&)>& action) {
  const mpi::Environment environment{argument_count, arguments};
  try {
    action(World{});
    return 0;
  } catch (const std::exception& error) {
    return handle(error);
  }
}

int environment_inside(const std::function<void(const World&)>& action) {
  try {
    const mpi::Environment environment{argument_count, arguments};
    action(World{});
    return 0;
  } catch (const std::exception& error) {
    return handle(error);
  }
}

int unprotected(const std::function<void(const World&)>& action) {
  const mpi::Environment environment{argument_count, arguments};
  action(World{});
  return 0;
}

template <class F>
int with_run(F f) {
  return run(argument_count, arguments, f);
}

using Modes = std::map<std::string, std::function<int()>>;

// Programs with an Environment that end without an exception.
const Modes orderly{
    {"closed",
     [] {
       return unprotected([](const World&) {
         Mesh mesh = open_mesh();
         sum(mesh);
         mesh.close();
       });
     }},
    {"closed mesh outlives the environment",
     [] {
       std::optional<Mesh> mesh;
       return unprotected([&](const World&) {
         mesh.emplace(open_mesh());
         mesh->close();
       });
     }},
    {"environment inside, closed",
     [] { return environment_inside([](const World&) { open_mesh().close(); }); }},
    {"unclosed",
     [] {
       return unprotected([](const World&) {
         Mesh mesh = open_mesh();
         sum(mesh);
       });
     }},
    {"open mesh outlives the environment",
     [] {
       static std::optional<Mesh> mesh;
       return unprotected([&](const World&) { mesh.emplace(open_mesh()); });
     }},
    {"unclosed, a thread reads stdin",
     [] {
       return unprotected([](const World&) {
         read_stdin();
         Mesh mesh = open_mesh();
       });
     }},
    {"one rank leaves",
     [] {
       return unprotected([](const World& world) {
         Mesh mesh = open_mesh();
         if (world.is_last()) return;
         mesh.close();
       });
     }},
    {"left to the launcher",
     [] {
       const mpi::Environment environment{argument_count, arguments, mpi::ThreadLevel::funneled,
                                          mpi::NcclLaunchOrder::unchanged,
                                          mpi::UncleanEnd::leave_to_launcher};
       Mesh mesh = open_mesh();
       sum(mesh);
       return 4;
     }},
    {"MPI of the program",
     [] {
       MPI_Init(&argument_count, &arguments);
       {
         const mpi::Environment environment{mpi::ThreadLevel::single};
         Mesh mesh = open_mesh();
         sum(mesh);
       }
       MPI_Finalize();
       return 0;
     }},
    {"the program aborts",
     [] {
       return unprotected([](const World& world) {
         Mesh mesh = open_mesh();
         if (world.is_last()) MPI_Abort(MPI_COMM_WORLD, 4);
         sum(mesh);
       });
     }},
    {"a child process exits",
     [] {
       return unprotected([](const World&) {
         Mesh mesh = open_mesh();
         const pid_t child = fork();
         if (child == 0) std::exit(9);
         waitpid(child, nullptr, 0);
         sum(mesh);
         mesh.close();
       });
     }},
    {"a child process returns", [] { return unprotected(return_in_child); }},
    {"a child process destroys a static mesh",
     [] {
       static std::optional<Mesh> mesh;
       return unprotected([](const World& world) {
         mesh.emplace(open_mesh());
         sum(*mesh);
         if (!is_parent_after(world)) std::exit(0);
         sum(*mesh);
         mesh->close();
       });
     }},
};

// Programs that exit() inside.
const Modes exits{
    {"exit 0, closed",
     [] {
       return unprotected([](const World&) {
         open_mesh().close();
         std::exit(0);
       });
     }},
    {"exit 0, open",
     [] {
       return unprotected([](const World&) {
         const Mesh mesh = open_mesh();
         std::exit(0);
       });
     }},
    {"exit 5 on one rank",
     [] {
       return unprotected([](const World& world) {
         Mesh mesh = open_mesh();
         if (world.is_last()) std::exit(5);
         sum(mesh);
         sum(mesh);
       });
     }},
    {"exit 0 in a thread",
     [] {
       return unprotected([](const World& world) {
         open_mesh().close();
         if (world.is_last()) std::thread{[] { std::exit(0); }}.join();
       });
     }},
    {"static environment",
     [] {
       static const mpi::Environment environment{argument_count, arguments};
       open_mesh().close();
       return 0;
     }},
    {"static environment, exit 3 on one rank",
     [] {
       static const mpi::Environment environment{argument_count, arguments};
       if (World{}.is_last()) std::exit(3);
       open_mesh().close();
       return 0;
     }},
    {"exit 6 before the mesh",
     [] {
       return unprotected([](const World& world) {
         if (world.is_last()) std::exit(6);
         Mesh mesh = open_mesh();
       });
     }},
};

// Programs that handle an exception.
const Modes caught{
    {"caught outside, alone", [] { return environment_outside(fail_alone); }},
    {"caught inside, alone", [] { return environment_inside(fail_alone); }},
    {"caught outside, timeout", [] { return environment_outside(time_out); }},
    {"caught inside, timeout", [] { return environment_inside(time_out); }},
    {"timeout, closed",
     [] {
       return environment_outside([](const World& world) {
         Mesh mesh = open_mesh("*.*:host=mpi", 0.5);
         std::vector<float> values(100, 1);
         try {
           if (world.is_last())
             std::this_thread::sleep_for(std::chrono::milliseconds{1500});
           else
             mesh["tp"].all_reduce(values);
         } catch (const TimeoutError&) {
         }
         mesh.close();
       });
     }},
    {"timeout of a work",
     [] {
       return environment_outside([](const World& world) {
         Mesh mesh = open_mesh("*.*:host=mpi");
         if (world.is_last()) std::this_thread::sleep_for(std::chrono::seconds{30});
         mesh["tp"].all_reduce_async(std::vector<float>(100, 1)).wait(Deadline::Duration{1.0});
       });
     }},
    {"before the mesh",
     [] {
       return environment_inside([](const World& world) {
         if (world.is_last()) throw std::runtime_error{"the last rank fails"};
         open_mesh().close();
       });
     }},
    {"wrong mesh",
     [] {
       return environment_outside([](const World&) { Mesh{MPI_COMM_WORLD, "tp=77"}.close(); });
     }},
    {"wrong mesh, environment inside",
     [] {
       return environment_inside([](const World&) { Mesh{MPI_COMM_WORLD, "tp=77"}.close(); });
     }},
    {"second environment",
     [] {
       environment_inside([](const World&) { throw std::runtime_error{"only a trial"}; });
       return environment_inside([](const World&) { open_mesh().close(); });
     }},
};

void previous_handler() {
  std::fprintf(stderr, "handler of the program\n");
  std::abort();
}

// Programs that do not handle an exception.
const Modes uncaught{
    {"uncaught", [] { return unprotected(fail_alone); }},
    {"uncaught timeout", [] { return unprotected(time_out); }},
    {"uncaught before the mesh",
     [] {
       return unprotected([](const World& world) {
         if (world.is_last()) throw std::runtime_error{"the last rank fails"};
         open_mesh().close();
       });
     }},
    {"uncaught in a thread",
     [] {
       return unprotected([](const World& world) {
         Mesh mesh = open_mesh();
         if (world.is_last())
           std::thread{[] { throw std::runtime_error{"the last rank fails"}; }}.join();
         sum(mesh);
       });
     }},
    {"uncaught, own handler",
     [] {
       std::set_terminate(previous_handler);
       return unprotected(fail_alone);
     }},
    {"uncaught after the environment",
     [] {
       unprotected([](const World&) { open_mesh().close(); });
       if (std::get_terminate() == previous_handler) return 1;
       throw std::runtime_error{"MPI is finalised"};
     }},
};

// Programs of rankmesh::run.
const Modes runs{
    {"run", [] { return with_run([] { open_mesh().close(); }); }},
    {"run with the environment",
     [] {
       return with_run([](mpi::Environment& environment) {
         open_mesh().close();
         return environment.initialised_here() ? 0 : 1;
       });
     }},
    {"run returns 7",
     [] {
       return with_run([] {
         open_mesh().close();
         return 7;
       });
     }},
    {"run, unclosed",
     [] {
       return with_run([] {
         Mesh mesh = open_mesh();
         sum(mesh);
         return 7;
       });
     }},
    {"run, wrong mesh", [] { return with_run([] {
                               Mesh{MPI_COMM_WORLD, "tp=77"}.close();
                             }); }},
    {"run, different meshes",
     [] {
       return with_run([] {
         Mesh{MPI_COMM_WORLD, World{}.is_last() ? "dp=auto" : "tp=auto"}.close();
       });
     }},
    {"run, one fails", [] { return with_run([] { fail_alone(World{}); }); }},
    {"run, one fails before the mesh",
     [] {
       return with_run([] {
         if (World{}.is_last()) throw std::runtime_error{"the last rank fails"};
         open_mesh().close();
       });
     }},
    {"run, all differ",
     [] {
       return with_run([] {
         const Mesh mesh = open_mesh();
         throw std::runtime_error{"text " + std::to_string(World{}.rank)};
       });
     }},
    {"run, most fail",
     [] {
       return with_run([] {
         Mesh mesh = open_mesh();
         if (World{}.rank != 0) throw std::runtime_error{"most ranks fail"};
         sum(mesh);
       });
     }},
    {"run, timeout", [] { return with_run([] { time_out(World{}); }); }},
    {"run, no std::exception", [] { return with_run([] { throw 42; }); }},
    {"run, a thread reads stdin",
     [] {
       return with_run([] {
         read_stdin();
         std::printf("text in the buffer\n");
         if (World{}.is_last()) throw std::runtime_error{"the last rank fails"};
         open_mesh().close();
       });
     }},
    {"run, a child process fails",
     [] {
       return with_run([] {
         Mesh mesh = open_mesh();
         sum(mesh);
         if (!is_parent_after(World{})) throw std::runtime_error{"the child fails"};
         sum(mesh);
         mesh.close();
       });
     }},
    {"run, exit",
     [] {
       return with_run([] {
         Mesh mesh = open_mesh();
         if (World{}.is_last()) std::exit(8);
         sum(mesh);
         sum(mesh);
       });
     }},
};

}  // namespace

int main(int argc, char** argv) {
  std::printf("process %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  argument_count = argc;
  arguments = argv;
  for (const Modes* modes : {&orderly, &exits, &caught, &uncaught, &runs})
    if (const auto mode = modes->find(argc > 1 ? argv[1] : ""); mode != modes->end())
      return mode->second();
  std::fprintf(stderr, "no such mode\n");
  return 99;
}
