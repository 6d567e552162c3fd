// SPDX-License-Identifier: BSD-3-Clause
// Compares opening and closing a mesh with the same communicators made by hand.
//
//   scripts/run-mpi 16 build-bench/benchmarks/opening [PAIRS]
//
// The mesh is pp=2,dp=2,cp=2,ep=2,tp=N/16 on N ranks. By hand: MPI_Comm_dup, one MPI_Comm_split per
// dimension, and MPI_Comm_free of all six. Both run alternately in one job, PAIRS times (default
// 30). A time is that of the slowest rank. The processor time of all ranks together depends less on
// what else the machine does.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/rankmesh.hpp"

namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Returns the seconds until the last rank has finished. Adds the processor time of all ranks to
// `processor`.
double timed(const std::function<void()>& run, double& processor) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  const double before = processor_seconds();
  run();
  const double used = processor_seconds() - before;
  double mine = MPI_Wtime() - begin;
  double longest = 0;
  double of_all = 0;
  MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&used, &of_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  processor += of_all;
  return longest;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

void by_hand(int rank, int tp) {
  const int sizes[] = {tp, 2, 2, 2, 2};  // the last dimension varies fastest
  std::vector<MPI_Comm> comms(1);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  int stride = 1;
  for (const int size : sizes) {
    const int coordinate = rank / stride % size;
    MPI_Comm_split(comms[0], rank - coordinate * stride, coordinate, &comms.emplace_back());
    stride *= size;
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 30;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks % 16 != 0) {
    if (rank == 0) std::fprintf(stderr, "opening: start a multiple of 16 ranks\n");
    return 2;
  }
  const int tp = ranks / 16;
  const std::string text = "pp=2,dp=2,cp=2,ep=2,tp=" + std::to_string(tp);
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  std::vector<double> opened, closed, hand, ratios, ratios_of_processor;
  for (int pair = -1; pair < pairs; ++pair) {  // the first pair does not count
    double of_mesh = 0;
    double of_hand = 0;
    const auto mesh = [&] {
      std::optional<rankmesh::Mesh> mesh;
      opened.push_back(timed([&] { mesh.emplace(MPI_COMM_WORLD, text, options); }, of_mesh));
      closed.push_back(timed([&] { mesh->close(); }, of_mesh));
    };
    if (pair % 2 == 0) mesh();
    hand.push_back(timed([&] { by_hand(rank, tp); }, of_hand));
    if (pair % 2 != 0) mesh();
    ratios.push_back((opened.back() + closed.back()) / hand.back());
    ratios_of_processor.push_back(of_mesh / of_hand);
    if (pair < 0)
      for (auto* list : {&opened, &closed, &hand, &ratios, &ratios_of_processor}) list->clear();
  }
  if (rank == 0)
    std::printf(
        "%d ranks, %d pairs: open %.2f ms, close %.2f ms, by hand %.2f ms, (open + close) / by "
        "hand %.2f (quartiles %.2f .. %.2f), of processor time %.2f\n",
        ranks, pairs, quantile(opened, 0.5) * 1e3, quantile(closed, 0.5) * 1e3,
        quantile(hand, 0.5) * 1e3, quantile(ratios, 0.5), quantile(ratios, 0.25),
        quantile(ratios, 0.75), quantile(ratios_of_processor, 0.5));
}
