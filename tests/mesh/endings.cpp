// SPDX-License-Identifier: BSD-3-Clause
// endings MODE: programs that end in the ways in which programs end. Every rank prints its process
// id first. The script `endings` runs all modes and has the expected status and text of each.
#include "endings.hpp"

#include <set>

#include "base/detail/patience.hpp"

using namespace endings;

namespace {

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

// In these modes, all ranks end the job, with one report. The first one waits for the words of the
// others, however busy the machine is. Where a rank has nothing to say, that would only take
// longer.
void be_patient(const std::string& mode) {
  static const std::set<std::string> all_ranks_end{"unclosed",
                                                   "unclosed, a thread reads stdin",
                                                   "open mesh outlives the environment",
                                                   "exit 0, open",
                                                   "caught outside, alone",
                                                   "caught inside, alone",
                                                   "wrong mesh, environment inside",
                                                   "run, unclosed",
                                                   "run, wrong mesh",
                                                   "run, different meshes",
                                                   "run, all differ",
                                                   "run, most fail",
                                                   "run, no std::exception",
                                                   "run, nested causes"};
  if (!all_ranks_end.contains(mode)) return;
  rankmesh::detail::Patience& patience = rankmesh::detail::patience_of_tests();
  patience.last_words = Deadline::Duration{3};
  patience.reporter = Deadline::Duration{6};  // the others wait for the first one
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("process %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  argument_count = argc;
  arguments = argv;
  be_patient(argc > 1 ? argv[1] : "");
  for (const Modes* modes : {&orderly, &exits, &failing_modes()})
    if (const auto mode = modes->find(argc > 1 ? argv[1] : ""); mode != modes->end())
      return mode->second();
  std::fprintf(stderr, "no such mode\n");
  return 99;
}
