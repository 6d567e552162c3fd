// SPDX-License-Identifier: BSD-3-Clause
// The cost of the option `check`: calls with it and without it, in turns, in one run.
//   scripts/run-mpi 2 build/benchmarks/check_cost
//   scripts/emulated-hosts mpirun 2 1 build/benchmarks/check_cost
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

namespace {

constexpr int rounds = 15;
constexpr int calls = 200;

double microseconds(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  return time.count() / calls;
}

double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[rounds / 2];
}

// Prints the time of a call without the option and with it.
void compare(const std::string& name, GroupCoordinator& plain, GroupCoordinator& checked,
             const std::function<void(GroupCoordinator&)>& call) {
  std::vector<double> without, with;
  for (int round = 0; round < rounds; ++round) {
    without.push_back(microseconds([&] { call(plain); }));
    with.push_back(microseconds([&] { call(checked); }));
  }
  if (plain.is_first())
    std::printf("%-24s %8.1f us without %8.1f us with   %5.2f\n", name.c_str(), median(without),
                median(with), median(with) / median(without));
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    MeshOptions options;
    options.check = false;
    Mesh plain{MPI_COMM_WORLD, "tp=auto", options};
    options.check = true;
    Mesh checked{MPI_COMM_WORLD, "tp=auto", options};
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}}) {
      std::vector<float> values(bytes / sizeof(float));
      std::vector<float> received(values.size());
      const std::string size = " of " + std::to_string(bytes) + " B";
      compare("all_reduce" + size, plain["tp"], checked["tp"],
              [&](GroupCoordinator& tp) { tp.all_reduce(values, received); });
      compare("broadcast" + size, plain["tp"], checked["tp"],
              [&](GroupCoordinator& tp) { tp.broadcast(values, 0); });
      // There and back.
      compare("send and recv" + size, plain["tp"], checked["tp"], [&](GroupCoordinator& tp) {
        if (tp.is_first()) tp.send(values, next);
        if (tp.rank_in_group() == RankInGroup{1}) {
          tp.recv(received, prev);
          tp.send(values, prev);
        }
        if (tp.is_first()) tp.recv(received, next);
      });
    }
    checked.close();
    plain.close();
  });
}
