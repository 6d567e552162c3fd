// SPDX-License-Identifier: BSD-3-Clause
// A rank leaves a broadcast between nodes when MPI is about to receive its part. What MPI receives
// afterwards must not go to the memory of the program, which may hold something else by then.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/rankmesh.hpp"

using namespace std::chrono_literals;

namespace {

constexpr int of_root = 1;
constexpr int of_leaver = 7;

using Clock = std::chrono::steady_clock;

// Lets MPI make progress.
void poll_mpi(Clock::duration time) {
  const Clock::time_point end = Clock::now() + time;
  while (Clock::now() < end) {
    int has_arrived = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &has_arrived, MPI_STATUS_IGNORE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool leaves = rank == size / 2;  // the first rank of the second node
  std::vector<int> values(1 << 18, of_root);
  try {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto", {.survive = rankmesh::Survival{}}};
    auto& dp = mesh["dp"];
    dp.broadcast(values, 0);  // so that all are connected
    if (leaves) std::ranges::fill(values, of_leaver);
    const Clock::time_point begin = Clock::now();
    rankmesh::Work begun = dp.broadcast_async(values, 0);
    const auto test_until = [&](std::chrono::milliseconds time) {
      while (Clock::now() < begin + time) (void)begun.test();
    };
    if (leaves) {
      std::this_thread::sleep_until(begin + 300ms);
      test_until(600ms);
      throw std::runtime_error{"this rank leaves"};
    }
    // The others announce the data in this time, and MPI sends them when they come back.
    test_until(200ms);
    std::this_thread::sleep_until(begin + 1000ms);
    begun.wait();
  } catch (const rankmesh::Error&) {
  } catch (const std::runtime_error&) {
    fmt::print("the rank has left a broadcast\n");
  }
  if (leaves) std::ranges::fill(values, of_leaver);
  poll_mpi(2s);
  const auto changed = std::ranges::count_if(values, [](int value) { return value != of_leaver; });
  if (leaves) fmt::print("numbers that have changed: {}\n", changed);
  return 0;
}
