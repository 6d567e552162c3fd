// SPDX-License-Identifier: BSD-3-Clause
// two_levels [--ops LIST] [--min BYTES] [--max BYTES] [--pairs N]
//
// Compares collectives of a group that spans nodes with the function of MPI, in interleaved pairs
// in one run; the time of a batch is that of the slowest rank. It prints the median time of one
// call of MPI, and two medians of ratios with their 95% confidence intervals:
//
//   hierarchical / MPI   rankmesh on two levels
//   one per node / MPI   the same call of MPI with the same buffers, on a communicator with one
//   rank
//                        of each node, while the other ranks wait
//
// Bytes are those of a rank's largest buffer. scripts/bench-two-levels starts it on emulated hosts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

namespace {

using Action = std::function<void()>;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::string ops = "barrier,broadcast,all_reduce,all_gather,reduce_scatter,reduce,gather,scatter";
  std::int64_t least = 8;
  std::int64_t most = 4 << 20;
  int pairs = 15;
};

bool contains(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

MeshOptions by_two_levels() {
  MeshOptions options;
  options.routes = "*.*:host=hierarchical";
  return options;
}

// Waits for all ranks without using a core, so that ranks that have nothing to do do not disturb.
void wait_quietly() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds{200});
  }
}

// Returns the seconds per call of the slowest rank. @param takes_part  Whether this rank calls.
double batch(const Action& action, int calls, bool takes_part = true) {
  if (takes_part) action();
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = Clock::now();
  if (takes_part)
    for (int i = 0; i < calls; ++i) action();
  double time = takes_part ? std::chrono::duration<double>(Clock::now() - start).count() : 0;
  wait_quietly();
  MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return time / calls;
}

struct Summary {
  double median, low, high;
};

Summary summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  // The 95% confidence interval of the median, from order statistics.
  const double half = 0.98 * std::sqrt(n);
  const auto at = [&](double index) {
    return values[static_cast<std::size_t>(std::clamp(index, 0.0, n - 1))];
  };
  return {at((n - 1) / 2), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half) - 1)};
}

class Comparison {
 public:
  explicit Comparison(const Settings& settings)
      : settings_{settings},
        most_{std::max<std::size_t>(static_cast<std::size_t>(settings.most) / sizeof(float),
                                    static_cast<std::size_t>(group_.size()))},
        in_(most_),
        out_(most_) {
    const Placement& placement = mesh_.placement();
    rank_ = static_cast<int>(mesh_.rank().value());
    is_first_ = placement.local_rank(mesh_.rank()) == 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &flat_);
    MPI_Comm_split(MPI_COMM_WORLD, is_first_ ? 0 : MPI_UNDEFINED, rank_, &one_per_node_);
    if (rank_ != 0) return;
    std::printf("%lld ranks on %d nodes\n%-15s %9s %11s   %-20s   %-20s   %s\n",
                static_cast<long long>(group_.size()), placement.node_count(), "operation", "bytes",
                "MPI, us", "hierarchical / MPI", "one per node / MPI", "least times");
  }

  void run() {
    compare(
        "barrier", 0, [](MPI_Comm comm) { MPI_Barrier(comm); }, [&] { group_.barrier(); });
    for (std::int64_t bytes = settings_.least; bytes <= settings_.most; bytes *= 4) {
      equal_buffers(static_cast<std::size_t>(bytes) / sizeof(float));
      blocks(std::max<std::size_t>(1, static_cast<std::size_t>(bytes) / sizeof(float) /
                                          static_cast<std::size_t>(group_.size())));
    }
    MPI_Comm_free(&flat_);
    if (is_first_) MPI_Comm_free(&one_per_node_);
    mesh_.close();
  }

 private:
  using OfComm = std::function<void(MPI_Comm)>;

  void compare(const char* name, std::size_t bytes, const OfComm& by_mpi, const Action& ours) {
    if (!contains(settings_.ops, name)) return;
    const Action flat = [&] { by_mpi(flat_); };
    const Action alone = [&] { by_mpi(one_per_node_); };
    const double once = batch(flat, 3);
    const int calls = static_cast<int>(std::clamp(2e-3 / once, 1.0, 200.0));
    std::vector<double> times, ratios, alone_ratios;
    double least_ours = 1e9, least_alone = 1e9;
    for (int pair = -1; pair < settings_.pairs; ++pair) {  // the first is a warm-up
      double mpi = 0;
      if (pair % 2 == 0) mpi = batch(flat, calls);
      const double two_levels = batch(ours, calls);
      const double one_per_node = batch(alone, calls, is_first_);
      if (pair % 2 != 0) mpi = batch(flat, calls);
      if (pair < 0) continue;
      times.push_back(mpi);
      least_ours = std::min(least_ours, two_levels);
      least_alone = std::min(least_alone, one_per_node);
      ratios.push_back(two_levels / mpi);
      alone_ratios.push_back(one_per_node / mpi);
    }
    if (rank_ != 0) return;
    const Summary a = summary(ratios), b = summary(alone_ratios);
    const double least = *std::ranges::min_element(times);
    std::printf(
        "%-15s %9zu %11.2f   %5.2f (%5.2f..%5.2f)   %5.2f (%5.2f..%5.2f)   %.1f us %.2f %.2f\n",
        name, bytes, summary(times).median * 1e6, a.median, a.low, a.high, b.median, b.low, b.high,
        least * 1e6, least_ours / least, least_alone / least);
    std::fflush(stdout);
  }

  void equal_buffers(std::size_t count) {
    const int n = static_cast<int>(count);
    const std::size_t bytes = count * sizeof(float);
    const std::span<float> in{in_.data(), count}, out{out_.data(), count};
    compare(
        "broadcast", bytes, [&](MPI_Comm comm) { MPI_Bcast(out_.data(), n, MPI_FLOAT, 0, comm); },
        [&] { group_.broadcast(out, 0); });
    compare(
        "all_reduce", bytes,
        [&](MPI_Comm comm) {
          MPI_Allreduce(MPI_IN_PLACE, out_.data(), n, MPI_FLOAT, MPI_SUM, comm);
        },
        [&] { group_.all_reduce(out); });
    compare(
        "reduce", bytes,
        [&](MPI_Comm comm) { MPI_Reduce(in_.data(), out_.data(), n, MPI_FLOAT, MPI_SUM, 0, comm); },
        [&] { group_.reduce(in, out, 0); });
  }

  // The blocks of a communicator with fewer ranks are larger, so that the whole buffer is equal.
  void blocks(std::size_t block) {
    const std::size_t whole = block * static_cast<std::size_t>(group_.size());
    const std::size_t bytes = whole * sizeof(float);
    const auto count = [whole](MPI_Comm comm) {
      int size = 1;
      MPI_Comm_size(comm, &size);
      return static_cast<int>(whole) / size;
    };
    const std::span<float> in{in_.data(), block}, out{out_.data(), block};
    const std::span<float> all_in{in_.data(), whole}, all_out{out_.data(), whole};
    const auto gather = [&, count](MPI_Comm comm) {
      const int n = count(comm);
      MPI_Allgather(in_.data(), n, MPI_FLOAT, out_.data(), n, MPI_FLOAT, comm);
    };
    compare("all_gather", bytes, gather, [&] { group_.all_gather(in, all_out); });
    const auto reduce_scatter = [&, count](MPI_Comm comm) {
      MPI_Reduce_scatter_block(in_.data(), out_.data(), count(comm), MPI_FLOAT, MPI_SUM, comm);
    };
    compare("reduce_scatter", bytes, reduce_scatter, [&] { group_.reduce_scatter(all_in, out); });
    const auto to_one = [&, count](MPI_Comm comm) {
      const int n = count(comm);
      MPI_Gather(in_.data(), n, MPI_FLOAT, out_.data(), n, MPI_FLOAT, 0, comm);
    };
    compare("gather", bytes, to_one, [&] { group_.gather(in, all_out, 0); });
    const auto from_one = [&, count](MPI_Comm comm) {
      const int n = count(comm);
      MPI_Scatter(in_.data(), n, MPI_FLOAT, out_.data(), n, MPI_FLOAT, 0, comm);
    };
    compare("scatter", bytes, from_one, [&] { group_.scatter(all_in, out, 0); });
  }

  Settings settings_;
  Mesh mesh_{MPI_COMM_WORLD, "tp=auto", by_two_levels()};
  GroupCoordinator& group_ = mesh_["tp"];
  std::size_t most_;  // elements
  std::vector<float> in_, out_;
  MPI_Comm flat_ = MPI_COMM_NULL, one_per_node_ = MPI_COMM_NULL;
  int rank_ = 0;
  bool is_first_ = false;  // of its node
};

}  // namespace

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--ops") settings.ops = argv[i + 1];
    if (flag == "--min") settings.least = std::atoll(argv[i + 1]);
    if (flag == "--max") settings.most = std::atoll(argv[i + 1]);
    if (flag == "--pairs") settings.pairs = std::atoi(argv[i + 1]);
  }
  Comparison{settings}.run();
  return 0;
}
