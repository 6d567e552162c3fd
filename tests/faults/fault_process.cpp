// SPDX-License-Identifier: BSD-3-Clause
// fault_process ACTION [OPTION...]: ranks call all_reduce again and again, until something happens
// to one of them.
//
//   ACTION         what happens to the victim after 20 calls:
//                  stop       SIGSTOP
//                  kill       SIGKILL
//                  busy       it computes for 6 s instead of calling
//                  continue   SIGSTOP, and SIGCONT after 4 s
//                  none       nothing: something happens to its host
//   --victim RANK  the last, unless given
//   --route R      transport of the calls: shm, mpi or hierarchical; with `transfer`, the ranks
//   move
//                  a tensor again and again instead
//   --count N      floats per call (default 1000)
//   --deadline S, --timeout S   as in MeshOptions
//   --limit S      the program ends after so many seconds without an error (default 12)
//
// Each rank prints "READY" after 20 calls, and a line PROCESS with a JSON object when its calls
// end: how, and how many seconds after its last good call. Ranks stay until the victim of
// `continue` had time to report.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faults/cell.hpp"
#include "faults/hang_guard.hpp"
#include "faults/report.hpp"
#include "rankmesh/exchange/redistribution.hpp"

using namespace faults;
using Clock = std::chrono::steady_clock;

namespace {

struct Options {
  std::string action = "none", route = "shm";
  int victim = -1;
  std::size_t count = 1000;
  double deadline = 0, timeout = 3, limit = 12;
};

Options parse(int argc, char** argv) {
  Options result;
  if (argc > 1) result.action = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--victim") result.victim = std::stoi(value);
    if (name == "--route") result.route = value;
    if (name == "--count") result.count = std::stoull(value);
    if (name == "--deadline") result.deadline = std::stod(value);
    if (name == "--timeout") result.timeout = std::stod(value);
    if (name == "--limit") result.limit = std::stod(value);
  }
  return result;
}

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>{seconds}); }
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Starts a process that sends SIGCONT to this one, some time after a byte has come through the
// pipe. It is started before MPI, so that it holds nothing of MPI's.
int start_alarm(double seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t parent = getpid();
  if (fork() == 0) {
    close(ends[1]);
    char byte = 0;
    if (read(ends[0], &byte, 1) == 1) {
      pause(seconds);
      kill(parent, SIGCONT);
    }
    std::_Exit(0);
  }
  close(ends[0]);
  return ends[1];
}

void act(const Options& options, int alarm) {
  if (options.action == "kill") raise(SIGKILL);
  if (options.action == "continue" && write(alarm, "x", 1) != 1) std::abort();
  if (options.action == "stop" || options.action == "continue") raise(SIGSTOP);
  if (options.action == "busy")
    for (const auto start = Clock::now(); seconds_since(start) < 6;) continue;
}

// Rows become columns, as doubles of which a pair of ranks reads or sends 64 KiB and more.
class Transfer {
 public:
  explicit Transfer(Mesh& mesh)
      : from_{place(mesh, "(tp, _)")},
        to_{place(mesh, "(_, tp)")},
        move_{mesh["tp"], plan_transfer(from_, to_)},
        source_(static_cast<std::size_t>(from_.local_count(mesh.rank())), 1.0),
        target_(static_cast<std::size_t>(to_.local_count(mesh.rank()))) {}
  void run() { move_.start(source_, target_).wait(); }
  [[nodiscard]] bool is_source_unchanged() const {
    return std::ranges::all_of(source_, [](double value) { return value == 1.0; });
  }

 private:
  static TensorPlacement place(const Mesh& mesh, const char* axes) {
    return TensorPlacement::parse("[128,2048] f64 @ tp=" + std::to_string(mesh.size()) + " : " +
                                  axes);
  }
  TensorPlacement from_, to_;
  exchange::Redistribution move_;
  std::vector<double> source_, target_;
};

// Calls until an exception ends it.
void call_for_ever(const Options& options, int alarm, Outcome& outcome, Clock::time_point& last) {
  const bool moves = options.route == "transfer";
  MeshOptions mesh_options;
  mesh_options.timeout = Deadline::Duration{moves ? options.deadline : options.timeout};
  if (!moves && options.deadline > 0) mesh_options.deadline = Deadline::Duration{options.deadline};
  const char* nodes = options.route == "hierarchical" ? "many_nodes" : "one_node";
  if (!moves)
    mesh_options.routes = std::string{"*.*:host:"} + nodes + "=" + options.route + "; *.*:host=mpi";
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", mesh_options};
  const int rank = static_cast<int>(mesh.rank().value());
  const int victim = options.victim < 0 ? static_cast<int>(mesh.size()) - 1 : options.victim;
  std::vector<float> values(options.count, 1);
  std::optional<Transfer> transfer;
  if (moves) transfer.emplace(mesh);
  try {
    for (int call = 0;; ++call) {
      if (call == 20) {
        std::printf("READY %d %d\n", rank, static_cast<int>(getpid()));
        std::fflush(stdout);
        if (rank == victim) act(options, alarm);
      }
      if (moves)
        transfer->run();
      else
        mesh["tp"].all_reduce(values);
      last = Clock::now();
      pause(0.005);
    }
  } catch (const std::exception& error) {
    outcome = outcome_of(error);
    if (moves && !transfer->is_source_unchanged()) outcome.name = "changed source";
    (void)new std::optional<Transfer>(std::move(transfer));
    // The memory stays valid, because MPI may still use it.
    new std::vector<float>(std::move(values));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const int alarm = options.action == "continue" ? start_alarm(4) : -1;
  const mpi::Environment environment{argc, argv};
  Outcome outcome;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto last = Clock::now();
  const auto report = [&] { print_process(rank, outcome, seconds_since(last)); };
  {
    const HangGuard guard{options.limit, [&] {
                            outcome.name = "hung";
                            report();
                          }};
    call_for_ever(options, alarm, outcome, last);
    report();
  }
  pause(options.action == "continue" ? 4.5 : 1.5);
  std::_Exit(0);  // other ranks may be dead, so MPI could not be finalised
}
