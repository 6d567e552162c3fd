// SPDX-License-Identifier: BSD-3-Clause
// Compares the control queue with MPI_Bcast of the same bytes on an equal communicator.
//
//   scripts/run-mpi 2 build-bench/benchmarks/control_queue_benchmark [PAIRS]
//
// Both run alternately in one job, PAIRS times (default 30). A run sends a number of messages from
// rank 0 to all others and ends when the last rank has the last message. In the mode "stream",
// messages follow each other. In the mode "step", both sides have a barrier after each message, as
// in an engine that waits for its workers before the next step: the queue the barrier of its group,
// and MPI_Bcast MPI_Barrier.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

// Returns the seconds until all ranks have finished.
double timed(MPI_Comm comm, const std::function<void()>& run) {
  MPI_Barrier(comm);
  const double begin = MPI_Wtime();
  run();
  double mine = MPI_Wtime() - begin;
  double longest = 0;
  MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, comm);
  return longest;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 30;
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  {
    rankmesh::exchange::ControlQueue queue{tp, 0};
    if (tp.is_first())
      std::printf(
          "%lld ranks, %d pairs\nmode     bytes   queue, us    Bcast, us    Bcast / queue "
          "(quartiles)\n",
          static_cast<long long>(tp.size()), pairs);
    for (const bool step : {false, true})
      for (const std::size_t bytes : {8, 64, 256, 1024, 4096, 16384, 65536}) {
        rankmesh::exchange::Bytes message(bytes), received(bytes);
        const int count = (bytes <= 4096 ? 4000 : 1000) / (step ? 4 : 1) / (tp.size() > 2 ? 4 : 1);
        const auto by_queue = [&] {
          for (int i = 0; i < count; ++i) {
            if (queue.is_writer())
              queue.write(message);
            else
              queue.read(received);
            if (step) tp.barrier();
          }
        };
        const auto by_mpi = [&] {
          for (int i = 0; i < count; ++i) {
            MPI_Bcast(message.data(), static_cast<int>(bytes), MPI_BYTE, 0, comm);
            if (step) MPI_Barrier(comm);
          }
        };
        std::vector<double> queue_times, mpi_times, ratios;
        by_queue();
        by_mpi();
        for (int pair = 0; pair < pairs; ++pair) {
          const bool first = pair % 2 == 0;  // the two sides begin alternately
          if (first) queue_times.push_back(timed(comm, by_queue) / count);
          mpi_times.push_back(timed(comm, by_mpi) / count);
          if (!first) queue_times.push_back(timed(comm, by_queue) / count);
          ratios.push_back(mpi_times.back() / queue_times.back());
        }
        if (tp.is_first())
          std::printf("%-6s %7zu  %10.3f   %10.3f    %6.2f (%.2f .. %.2f)\n",
                      step ? "step" : "stream", bytes, quantile(queue_times, 0.5) * 1e6,
                      quantile(mpi_times, 0.5) * 1e6, quantile(ratios, 0.5), quantile(ratios, 0.25),
                      quantile(ratios, 0.75));
      }
    tp.barrier();
  }
  MPI_Comm_free(&comm);
  mesh.close();
}
