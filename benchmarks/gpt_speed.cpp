// SPDX-License-Identifier: BSD-3-Clause
// gpt_speed [LAYOUT] [--NAME VALUE]... (the options of examples/gpt): compares examples/gpt with
// the same program with calls of MPI in the place of rankmesh (gpt_raw_mpi.hpp). Both train in
// turns in the same job. The result is the ratio of their speeds: the geometric mean of 20 pairs,
// and the interval of 95 % confidence.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <rankmesh/rankmesh.hpp>

#include "gpt_speed.hpp"

namespace {

constexpr int pairs = 20, steps = 5;

double seconds_of(Training& training, double& loss) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  loss = training.run(steps);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - begin;
}

int compare(int argc, char** argv) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto by_rankmesh = with_rankmesh::begin(argc, argv), by_mpi = with_mpi::begin(argc, argv);
  by_rankmesh->run(1);  // compares what buckets contain
  by_mpi->run(1);
  std::vector<double> logarithms;
  double worst = 0, loss_of_rankmesh = 0, loss_of_mpi = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    double of_rankmesh = 0, of_mpi = 0;
    if (pair % 2 == 0) of_rankmesh = seconds_of(*by_rankmesh, loss_of_rankmesh);
    of_mpi = seconds_of(*by_mpi, loss_of_mpi);
    if (pair % 2 == 1) of_rankmesh = seconds_of(*by_rankmesh, loss_of_rankmesh);
    logarithms.push_back(std::log(of_mpi / of_rankmesh));
    worst = std::max(worst, std::abs(loss_of_rankmesh / loss_of_mpi - 1));
    if (rank == 0)
      std::printf("%8.2f ms with rankmesh, %8.2f ms with MPI: %.3f\n", 1e3 * of_rankmesh / steps,
                  1e3 * of_mpi / steps, of_mpi / of_rankmesh);
  }
  by_rankmesh->close();
  by_mpi->close();

  double mean = 0, variance = 0;
  for (const double x : logarithms) mean += x / pairs;
  for (const double x : logarithms) variance += (x - mean) * (x - mean) / (pairs - 1);
  const double error = 2.09 * std::sqrt(variance / pairs);  // Student's t with 19 degrees
  if (rank == 0)
    std::printf(
        "the speed with rankmesh is %.3f (%.3f .. %.3f) of that with MPI; the losses differ "
        "by %.1e\n",
        std::exp(mean), std::exp(mean - error), std::exp(mean + error), worst);
  return worst < 1e-4 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return compare(argc, argv); });
}
