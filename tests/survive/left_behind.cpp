// SPDX-License-Identifier: BSD-3-Clause
// The last rank leaves a broadcast between nodes that it has begun. What MPI receives for it
// afterwards must not go to the memory of the program, which may hold something else by then.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/rankmesh.hpp"

namespace {

constexpr int of_root = 1;
constexpr int of_last = 7;

// Lets MPI make progress.
void poll_mpi(std::chrono::duration<double> time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
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
  const bool is_last = rank == size - 1;
  std::vector<int> values(1 << 18, is_last ? of_last : of_root);
  try {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto", {.survive = rankmesh::Survival{}}};
    if (is_last) {
      rankmesh::Work begun = mesh["dp"].broadcast_async(values, 0);
      (void)begun.test();
      throw std::runtime_error{"the last rank leaves"};
    }
    ::usleep(300'000);
    mesh["dp"].broadcast(values, 0);
  } catch (const rankmesh::LostRanks&) {
  } catch (const std::runtime_error& error) {
    if (!is_last) fmt::print("WRONG: rank {}: {}\n", rank, error.what());
  }
  poll_mpi(std::chrono::seconds{1});
  const auto changed = std::ranges::count_if(values, [](int value) { return value != of_last; });
  if (is_last) fmt::print("{} of the numbers of the last rank have changed\n", changed);
  return is_last && changed != 0 ? 1 : 0;
}
