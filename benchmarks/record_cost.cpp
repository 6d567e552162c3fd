// SPDX-License-Identifier: BSD-3-Clause
// The cost of the record: calls without it, with it, and with a time for every call, in turns, in
// one run.
//   scripts/run-mpi 2 build/benchmarks/record_cost
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

namespace {

constexpr int rounds = 41;
constexpr int calls = 1000;

double nanoseconds(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  return time.count() / calls;
}

double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[rounds / 2];
}

Mesh open(const char* record, const char* times) {
  setenv("RANKMESH_RECORD", record, 1);
  setenv("RANKMESH_RECORD_TIMES", times, 1);
  return Mesh{MPI_COMM_WORLD, "tp=auto"};
}

// Prints the time of a call in the three meshes, and the ratios to the first.
void compare(const std::string& name, std::array<Mesh, 3>& meshes,
             const std::function<void(GroupCoordinator&)>& call) {
  std::array<std::vector<double>, 3> times;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < meshes.size(); ++i) {
      GroupCoordinator& group = meshes[(i + static_cast<std::size_t>(round)) % 3]["tp"];
      times[(i + static_cast<std::size_t>(round)) % 3].push_back(nanoseconds([&] { call(group); }));
    }
  if (!meshes[0]["tp"].is_first()) return;
  const double off = median(times[0]), on = median(times[1]), all = median(times[2]);
  std::printf("%-22s off %9.1f ns   on %9.1f ns %5.2f   times %9.1f ns %5.2f\n", name.c_str(), off,
              on, on / off, all, all / off);
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    std::array<Mesh, 3> meshes{open("off", "0"), open("", "0"), open("", "1")};
    compare("barrier", meshes, [](GroupCoordinator& tp) { tp.barrier(); });
    for (const std::size_t bytes : {8, 64, 1024, 4096, 16384, 65536}) {
      std::vector<double> values(bytes / sizeof(double), 1.0);
      std::vector<double> received(values.size());
      compare("all_reduce of " + std::to_string(bytes) + " B", meshes,
              [&](GroupCoordinator& tp) { tp.all_reduce(values, received); });
    }
    for (Mesh& mesh : meshes) mesh.close();
  });
}
