// SPDX-License-Identifier: BSD-3-Clause
// Programs of `endings` that handle an exception, that do not, and programs of rankmesh::run.
#include "endings.hpp"

using namespace endings;

namespace {

// One rank does not come to an operation that MPI has begun on the others.
template <bool is_checked>
void give_up_a_work(const World& world) {
  Mesh mesh = open_mesh("*.*:host=mpi", {}, is_checked);
  try {
    if (world.is_last())
      std::this_thread::sleep_for(std::chrono::milliseconds{1500});
    else
      mesh["tp"].all_reduce_async(std::vector<float>(100, 1)).wait(Deadline::Duration{0.5});
  } catch (const TimeoutError&) {
  }
  mesh.close();
}

// A transport of the program whose operations never end, and use MPI.
class Stuck final : public Transport {
 public:
  [[nodiscard]] bool supports(const Call& call) const override { return call.is_async; }
  void run(const Call&, Waiter&) override {}
  [[nodiscard]] bool has_async_forms() const override { return true; }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call&) override {
    class StuckCall final : public Pending {
      bool test() override { return false; }
      [[nodiscard]] bool is_in_mpi() const override { return true; }
    };
    return std::make_unique<StuckCall>();
  }
};

void time_out_in_own_transport(const World&) {
  MeshOptions options;
  options.devices = DeviceUse::off;
  options.routes = "*.all_reduce=stuck";
  options.transports["stuck"] = [](const TransportGroup&) { return std::make_unique<Stuck>(); };
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  try {
    mesh["tp"].all_reduce_async(std::vector<float>(100, 1)).wait(Deadline::Duration{0.5});
  } catch (const TimeoutError&) {
  }
  mesh.close();
}

// Programs that handle an exception.
const Modes caught{
    {"caught outside, alone", [] { return environment_outside(fail_alone); }},
    {"caught inside, alone", [] { return environment_inside(fail_alone); }},
    {"caught outside, timeout", [] { return environment_outside(time_out); }},
    {"caught inside, timeout", [] { return environment_inside(time_out); }},
    {"timeout, closed", [] { return environment_outside(give_up_a_work<false>); }},
    {"timeout, checked, closed", [] { return environment_outside(give_up_a_work<true>); }},
    {"timeout of an own transport, closed",
     [] { return environment_outside(time_out_in_own_transport); }},
    {"timeout of a comparison, closed",
     [] {
       return environment_outside([](const World& world) {
         Mesh mesh = open_mesh("", 0.5, true);
         MPI_Comm comm = MPI_COMM_NULL;
         MPI_Comm_dup(MPI_COMM_WORLD, &comm);
         const auto adopted = mesh.adopt(comm, "adopted");
         try {
           if (world.is_last())
             std::this_thread::sleep_for(std::chrono::milliseconds{1500});
           else
             adopted->barrier();
         } catch (const TimeoutError&) {
         }
         try {
           mesh.close();
         } catch (const MismatchError&) {
         }
       });
     }},
    {"timeout before MPI, closed",
     [] {
       return environment_outside([](const World& world) {
         Mesh mesh = open_mesh("*.*:host=mpi", 0.5);
         try {
           if (world.is_last())
             std::this_thread::sleep_for(std::chrono::milliseconds{1500});
           else
             sum(mesh);
         } catch (const TimeoutError&) {
         }
         try {
           mesh.close();
         } catch (const TimeoutError&) {
         }
       });
     }},
    {"mismatch, closed",
     [] {
       return environment_outside([](const World& world) {
         Mesh mesh = open_mesh("*.*:host=mpi", 5.0);
         try {
           std::vector<float> values(world.is_last() ? 100 : 101, 1);
           mesh["tp"].all_reduce(values);
         } catch (const MismatchError&) {
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
    {"run, nested causes",
     [] {
       return with_run([] {
         try {
           throw UsageError{"the disk is full", "free some of it"};
         } catch (...) {
           std::throw_with_nested(std::runtime_error{"the run fails"});
         }
       });
     }},
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

const Modes& endings::failing_modes() {
  static const Modes all = [] {
    Modes modes = caught;
    modes.insert(uncaught.begin(), uncaught.end());
    modes.insert(runs.begin(), runs.end());
    return modes;
  }();
  return all;
}
