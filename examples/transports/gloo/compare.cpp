// SPDX-License-Identifier: BSD-3-Clause
// Compares MPI, shared memory and Gloo in one run: each size is measured in rounds in which the
// transports take turns. The time of a round is that of the slowest rank; the median of the rounds
// is printed, in microseconds. The last column is Gloo alone: its transport is called directly,
// without what rankmesh does before each call.
//
//     mpirun -n 4 ./gloo_compare [ROUNDS [LARGEST_BYTES]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rankmesh/rankmesh.hpp>

#include "gloo_transport.hpp"

namespace {

using rankmesh::GroupCoordinator;
using rankmesh::Operation;
using Values = std::vector<float>;

struct Candidate {
  std::string transport;
  std::unique_ptr<rankmesh::Mesh> mesh;
  std::vector<double> microseconds{};
};

// Runs one operation. `bytes` is the size of the largest buffer, as in routes.
void run(GroupCoordinator& group, Operation operation, Values& in, Values& out, std::size_t bytes) {
  const std::size_t whole = bytes / sizeof(float);
  const std::size_t block = whole / static_cast<std::size_t>(group.size());
  const auto of = [](Values& values, std::size_t n) { return std::span{values}.first(n); };
  switch (operation) {
    case Operation::barrier:
      return group.barrier();
    case Operation::broadcast:
      return group.broadcast(of(out, whole), 0);
    case Operation::reduce:
      return group.reduce(of(in, whole), of(out, whole), 0);
    case Operation::all_reduce:
      return group.all_reduce(of(in, whole), of(out, whole));
    case Operation::all_gather:
      return group.all_gather(of(in, block), of(out, block * group.size()));
    case Operation::gather:
      return group.gather(of(in, block), of(out, block * group.size()), 0);
    case Operation::scatter:
      return group.scatter(of(in, block * group.size()), of(out, block), 0);
    default:
      return group.all_to_all(of(in, block * group.size()), of(out, block * group.size()));
  }
}

/// Gloo without rankmesh, for barriers and sums.
class Alone final : private rankmesh::Waiter {
 public:
  Alone() {
    const rankmesh::mpi::CommunicatorView world{MPI_COMM_WORLD};
    transport_ = open_gloo({.name = "alone",
                            .ranks = rankmesh::RankSet::range(rankmesh::Rank{0}, world.size()),
                            .self = world.rank(),
                            .comm = world});
  }
  void barrier() { transport_->run({.operation = Operation::barrier}, *this); }
  void all_reduce(Values& in, Values& out, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    transport_->run({.operation = Operation::all_reduce,
                     .in = rankmesh::buffer_of(std::span{in}.first(count)).as_input(),
                     .out = rankmesh::buffer_of(std::span{out}.first(count))},
                    *this);
  }

 private:
  // Gloo waits by itself.
  void wait(const rankmesh::Call&, std::uint64_t, const std::function<bool()>&,
            const std::function<std::vector<std::int64_t>()>&,
            const std::function<bool()>&) override {}
  void finish(const rankmesh::Call&, std::uint64_t, std::unique_ptr<rankmesh::Pending>) override {}
  [[nodiscard]] std::string activity_of(const rankmesh::Call&) const override { return ""; }

  std::unique_ptr<rankmesh::Transport> transport_;
};

double measure(Candidate& candidate, const std::function<void()>& call, int repeats) {
  GroupCoordinator& world = (*candidate.mesh)["world"];
  call();
  world.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) call();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  std::vector<double> slowest{time.count() / repeats};
  world.all_reduce(slowest, rankmesh::ReduceOp::max);
  return slowest[0];
}

double median(std::vector<double>& times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void compare(std::vector<Candidate>& candidates, Alone& alone, Operation operation,
             std::size_t bytes, int rounds) {
  Values in(bytes / sizeof(float) + 1, 1.0F), out(bytes / sizeof(float) + 1);
  const int repeats = bytes < 100000 ? 50 : 5;
  std::vector<double> of_gloo_alone;
  for (Candidate& candidate : candidates) candidate.microseconds.clear();
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      GroupCoordinator& group = (*candidate.mesh)["world"];
      candidate.microseconds.push_back(measure(
          candidate, [&] { run(group, operation, in, out, bytes); }, repeats));
    }
    if (operation == Operation::barrier)
      of_gloo_alone.push_back(measure(
          candidates[0], [&] { alone.barrier(); }, repeats));
    if (operation == Operation::all_reduce)
      of_gloo_alone.push_back(measure(
          candidates[0], [&] { alone.all_reduce(in, out, bytes); }, repeats));
  }
  if (candidates.front().mesh->rank() != rankmesh::Rank{0}) return;
  std::printf("%-12s %10zu", std::string{to_string(operation)}.c_str(), bytes);
  for (Candidate& candidate : candidates) {
    std::printf(" %10.1f", median(candidate.microseconds));
    const auto carried =
        (*candidate.mesh)["world"].explain(operation, static_cast<std::int64_t>(bytes)).transport;
    if (carried != candidate.transport) std::printf(" (%s)", carried.c_str());
  }
  if (!of_gloo_alone.empty()) std::printf(" %10.1f", median(of_gloo_alone));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
    const std::size_t largest = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 22;
    std::vector<Candidate> candidates;
    for (const char* transport : {"mpi", "shm", "gloo"}) {
      rankmesh::MeshOptions options;
      options.transports = {{"gloo", open_gloo}};
      options.routes = std::string{"*.*:host="} + transport;
      candidates.push_back(
          {transport, std::make_unique<rankmesh::Mesh>(MPI_COMM_WORLD, "world=auto", options)});
    }
    if (candidates.front().mesh->rank() == rankmesh::Rank{0})
      std::printf("%-12s %10s %10s %10s %10s %10s\n", "operation", "bytes", "mpi", "shm", "gloo",
                  "gloo alone");
    Alone alone;
    compare(candidates, alone, Operation::barrier, 0, rounds);
    for (const Operation operation :
         {Operation::broadcast, Operation::reduce, Operation::all_reduce, Operation::all_gather,
          Operation::gather, Operation::scatter, Operation::all_to_all})
      for (std::size_t bytes = 1024; bytes <= largest; bytes *= 64)
        compare(candidates, alone, operation, bytes, rounds);
    for (Candidate& candidate : candidates) candidate.mesh->close();
  });
}
