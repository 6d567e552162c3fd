// SPDX-License-Identifier: BSD-3-Clause
// collectives [--ops LIST] [--min BYTES] [--max BYTES] [--pairs N] [--only COLUMNS]
//
// Compares each collective of rankmesh with the function of MPI on an equal communicator. It
// measures pairs of batches alternately in one run; the time of a batch is that of the slowest
// rank. It prints the median time of one call of MPI and, for each column, the median of the ratios
// of the pairs (below 1: faster than MPI) with its 95% confidence interval.
//
// routes rankmesh's default routes shm shared memory at every size sym symmetric buffers hand the
// ratio of sym to a loop that was written by hand (all_reduce only)
//
// Bytes are those of a rank's largest buffer. scripts/bench-collectives starts it with mpirun.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

namespace {

int rank = 0;
int size = 1;

struct Settings {
  std::string ops =
      "barrier,broadcast,all_reduce,all_gather,reduce_scatter,all_to_all,reduce,gather,scatter,"
      "send_recv,one_way";
  std::string only = "routes,shm,sym,hand";
  std::int64_t least = 8;
  std::int64_t most = 64 << 20;
  int pairs = 30;
};

bool contains(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// An all_reduce in shared memory that was written by hand: every rank reduces its slice of all
// buffers and writes the result to all of them. Counters in shared memory order the steps.
class ByHand {
 public:
  ByHand(std::size_t count, bool is_oversubscribed) : is_oversubscribed_{is_oversubscribed} {
    const auto bytes =
        static_cast<MPI_Aint>(128 + (count * sizeof(float) + 4095) / 4096 * 4096 + 128);
    void* own = nullptr;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window_);
    for (int k = 0; k < size; ++k) {
      MPI_Aint part = 0;
      int unit = 0;
      void* base = nullptr;
      MPI_Win_shared_query(window_, k, &part, &unit, &base);
      counters_.push_back(static_cast<std::atomic<std::uint64_t>*>(base));
      buffers_.push_back(reinterpret_cast<float*>(static_cast<char*>(base) + 128));
    }
    std::memset(own, 0, static_cast<std::size_t>(bytes));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~ByHand() { MPI_Win_free(&window_); }

  void barrier() {
    counters_[static_cast<std::size_t>(rank)]->store(++step_, std::memory_order_release);
    for (const auto* counter : counters_)
      for (int spins = 0; counter->load(std::memory_order_acquire) < step_; ++spins)
        if (is_oversubscribed_ && spins > 8) sched_yield();
  }

  void all_reduce(std::size_t count) {
    const std::size_t begin =
        count * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size);
    const std::size_t end =
        count * static_cast<std::size_t>(rank + 1) / static_cast<std::size_t>(size);
    if (size == 2) {
      float* const a = buffers_[0];
      float* const b = buffers_[1];
#pragma GCC ivdep
      for (std::size_t i = begin; i < end; ++i) a[i] = b[i] = a[i] + b[i];
    } else {
      constexpr std::size_t block = 1024;
      float sums[block];
      for (std::size_t at = begin; at < end; at += block) {
        const std::size_t n = std::min(block, end - at);
        std::memcpy(sums, buffers_[0] + at, n * sizeof(float));
        for (std::size_t k = 1; k < buffers_.size(); ++k) {
          const float* from = buffers_[k] + at;
          for (std::size_t i = 0; i < n; ++i) sums[i] += from[i];
        }
        for (float* to : buffers_) std::memcpy(to + at, sums, n * sizeof(float));
      }
    }
    barrier();
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::atomic<std::uint64_t>*> counters_;
  std::vector<float*> buffers_;
  std::uint64_t step_ = 0;
  bool is_oversubscribed_;
};

using Action = std::function<void()>;

// Returns the seconds per call of the slowest rank.
double batch(const Action& action, int calls) {
  action();  // not measured, because the batch before may have used other memory
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) action();
  double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                static_cast<double>(calls);
  MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return time;
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

struct Column {
  const char* name;
  Action action;  // empty: the column has no value for this operation
};

void compare(const std::string& operation, std::int64_t bytes, const Action& by_mpi,
             const std::vector<Column>& columns, const Action& by_hand, const Settings& settings) {
  const double once = batch(by_mpi, 3);
  const int calls = static_cast<int>(std::clamp(5e-4 / once, 1.0, 1000.0));
  std::vector<double> mpi_times;
  std::vector<std::vector<double>> ratios(columns.size());
  std::vector<double> to_hand;
  for (const Column& column : columns)
    if (column.action) batch(column.action, calls);  // warm-up
  for (int pair = 0; pair < settings.pairs; ++pair)
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (!columns[c].action) continue;
      // MPI and rankmesh begin alternately, because the first one finds other data in the caches.
      double mpi = 0;
      double ours = 0;
      if (pair % 2 == 0) mpi = batch(by_mpi, calls);
      ours = batch(columns[c].action, calls);
      if (pair % 2 == 1) mpi = batch(by_mpi, calls);
      mpi_times.push_back(mpi);
      ratios[c].push_back(ours / mpi);
      if (by_hand && std::strcmp(columns[c].name, "sym") == 0)
        to_hand.push_back(ours / batch(by_hand, calls));
    }
  if (rank != 0) return;
  std::printf("%-15s %9lld %11.2f", operation.c_str(), static_cast<long long>(bytes),
              summary(mpi_times).median * 1e6);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (ratios[c].empty()) {
      std::printf("   %-19s", "-");
      continue;
    }
    const Summary s = summary(ratios[c]);
    std::printf("   %5.2f (%5.2f..%5.2f)", s.median, s.low, s.high);
  }
  if (!to_hand.empty()) {
    const Summary s = summary(to_hand);
    std::printf("   %5.2f (%5.2f..%5.2f)", s.median, s.low, s.high);
  }
  std::printf("\n");
  std::fflush(stdout);
}

// Two equal meshes, one of which uses shared memory for everything, and buffers for all sizes.
class Comparison {
 public:
  explicit Comparison(const Settings& settings)
      : settings_{settings},
        most_{std::max<std::size_t>(static_cast<std::size_t>(settings.most) / sizeof(float),
                                    members())},
        in_(most_),
        out_(most_) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    std::fill(symmetric_in_.begin(), symmetric_in_.end(), 0.0F);
    std::fill(symmetric_out_.begin(), symmetric_out_.end(), 0.0F);
  }

  void run() {
    if (rank == 0) print_heading();
    barrier();
    for (std::int64_t bytes = settings_.least; bytes <= settings_.most; bytes *= 4) {
      with_equal_buffers(bytes);
      with_blocks(
          std::max<std::size_t>(1, static_cast<std::size_t>(bytes) / sizeof(float) / members()));
      messages(bytes);
    }
    shared_.close();
    plain_.close();
    MPI_Comm_free(&comm_);
  }

 private:
  static std::size_t members() { return static_cast<std::size_t>(size); }
  static bool is_oversubscribed() { return size > static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }
  static MeshOptions only_shared_memory() {
    MeshOptions options;
    options.routes = "*.*:host=shm";
    return options;
  }
  static void print_heading() {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(library, &length);
    std::printf("%d ranks, %ld cores, %.*s\n", size, sysconf(_SC_NPROCESSORS_ONLN),
                static_cast<int>(std::strcspn(library, ",")), library);
    std::printf("%-15s %9s %11s   %-19s   %-19s   %-19s   %-19s\n", "operation", "bytes", "MPI, us",
                "routes / MPI", "shm / MPI", "sym / MPI", "sym / by hand");
  }

  // A column of the table; its action is empty if the column was not requested.
  [[nodiscard]] Column column(const char* name, Action action) const {
    return {name, contains(settings_.only, name) ? std::move(action) : Action{}};
  }
  void compare(const char* operation, std::int64_t bytes, const Action& by_mpi,
               const std::vector<Column>& columns, const Action& by_hand = {}) const {
    if (contains(settings_.ops, operation))
      ::compare(operation, bytes, by_mpi, columns,
                contains(settings_.only, "hand") ? by_hand : Action{}, settings_);
  }

  void barrier() {
    compare("barrier", 0, [&] { MPI_Barrier(comm_); },
            {column("routes", [&] { routes_.barrier(); }), column("shm", [&] { shm_.barrier(); })});
  }

  // broadcast, all_reduce and reduce, whose buffers have the same size.
  void with_equal_buffers(std::int64_t bytes) {
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(float);
    const int n = static_cast<int>(count);
    const std::span<float> in{in_.data(), count};
    const std::span<float> out{out_.data(), count};
    const auto symmetric = symmetric_out_.subspan(0, count);
    compare("broadcast", bytes, [&] { MPI_Bcast(out.data(), n, MPI_FLOAT, 0, comm_); },
            {column("routes", [&] { routes_.broadcast(out, 0); }),
             column("shm", [&] { shm_.broadcast(out, 0); }),
             column("sym", [&] { shm_.broadcast(symmetric, 0); })});
    compare(
        "all_reduce", bytes,
        [&] { MPI_Allreduce(MPI_IN_PLACE, out.data(), n, MPI_FLOAT, MPI_SUM, comm_); },
        {column("routes", [&] { routes_.all_reduce(out); }),
         column("shm", [&] { shm_.all_reduce(out); }),
         column("sym", [&] { shm_.all_reduce(symmetric); })},
        [&] { hand_.all_reduce(count); });
    compare("reduce", bytes,
            [&] { MPI_Reduce(in.data(), out.data(), n, MPI_FLOAT, MPI_SUM, 0, comm_); },
            {column("routes", [&] { routes_.reduce(in, out, 0); }),
             column("shm", [&] { shm_.reduce(in, out, 0); })});
  }

  // The operations of which one buffer has a block of `block` elements per member.
  void with_blocks(std::size_t block) {
    const int n = static_cast<int>(block);
    const std::size_t whole = block * members();
    const auto bytes = static_cast<std::int64_t>(whole * sizeof(float));
    const std::span<float> in{in_.data(), block};
    const std::span<float> out{out_.data(), block};
    const std::span<float> all_in{in_.data(), whole};
    const std::span<float> all_out{out_.data(), whole};
    const auto symmetric_all_in = symmetric_in_.subspan(0, whole);
    const auto symmetric_all_out = symmetric_out_.subspan(0, whole);
    const auto symmetric_out = symmetric_out_.subspan(0, block);
    const auto own = symmetric_out_.subspan(block * static_cast<std::size_t>(rank), block);
    compare("all_gather", bytes,
            [&] { MPI_Allgather(in.data(), n, MPI_FLOAT, all_out.data(), n, MPI_FLOAT, comm_); },
            {column("routes", [&] { routes_.all_gather(in, all_out); }),
             column("shm", [&] { shm_.all_gather(in, all_out); }),
             column("sym", [&] { shm_.all_gather(own, symmetric_all_out); })});
    compare(
        "reduce_scatter", bytes,
        [&] { MPI_Reduce_scatter_block(all_in.data(), out.data(), n, MPI_FLOAT, MPI_SUM, comm_); },
        {column("routes", [&] { routes_.reduce_scatter(all_in, out); }),
         column("shm", [&] { shm_.reduce_scatter(all_in, out); }),
         column("sym", [&] { shm_.reduce_scatter(symmetric_all_in, symmetric_out); })});
    compare("all_to_all", bytes,
            [&] { MPI_Alltoall(all_in.data(), n, MPI_FLOAT, all_out.data(), n, MPI_FLOAT, comm_); },
            {column("routes", [&] { routes_.all_to_all(all_in, all_out); }),
             column("shm", [&] { shm_.all_to_all(all_in, all_out); }),
             column("sym", [&] { shm_.all_to_all(symmetric_all_in, symmetric_all_out); })});
    compare("gather", bytes,
            [&] { MPI_Gather(in.data(), n, MPI_FLOAT, all_out.data(), n, MPI_FLOAT, 0, comm_); },
            {column("routes", [&] { routes_.gather(in, all_out, 0); }),
             column("shm", [&] { shm_.gather(in, all_out, 0); })});
    compare("scatter", bytes,
            [&] { MPI_Scatter(all_in.data(), n, MPI_FLOAT, out.data(), n, MPI_FLOAT, 0, comm_); },
            {column("routes", [&] { routes_.scatter(all_in, out, 0); }),
             column("shm", [&] { shm_.scatter(all_in, out, 0); })});
  }

  void messages(std::int64_t bytes) {
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(float);
    const int n = static_cast<int>(count);
    const std::span<float> in{in_.data(), count};
    const std::span<float> out{out_.data(), count};
    compare("send_recv", bytes,
            [&] {
              MPI_Sendrecv(in.data(), n, MPI_FLOAT, (rank + 1) % size, 0, out.data(), n, MPI_FLOAT,
                           (rank + size - 1) % size, 0, comm_, MPI_STATUS_IGNORE);
            },
            {column("routes", [&] { routes_.send_recv(in, out, next, prev); })});
    // A message that goes round all ranks, so the time is that of `size` messages.
    const auto pass = [&](const auto& send, const auto& receive) {
      if (rank == 0) send();
      receive();
      if (rank != 0) send();
    };
    compare("one_way", bytes,
            [&] {
              pass([&] { MPI_Send(in.data(), n, MPI_FLOAT, (rank + 1) % size, 0, comm_); },
                   [&] {
                     MPI_Recv(out.data(), n, MPI_FLOAT, (rank + size - 1) % size, 0, comm_,
                              MPI_STATUS_IGNORE);
                   });
            },
            {column("routes", [&] {
              pass([&] { routes_.send(in, next); }, [&] { routes_.recv(out, prev); });
            })});
  }

  Settings settings_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  Mesh plain_{MPI_COMM_WORLD, "tp=auto"};
  Mesh shared_{MPI_COMM_WORLD, "tp=auto", only_shared_memory()};
  GroupCoordinator& routes_ = plain_["tp"];
  GroupCoordinator& shm_ = shared_["tp"];
  std::size_t most_;  // elements
  std::vector<float> in_, out_;
  SymmetricSpan<float> symmetric_in_ = shared_.allocate_symmetric<float>(most_, {"tp"});
  SymmetricSpan<float> symmetric_out_ = shared_.allocate_symmetric<float>(most_, {"tp"});
  ByHand hand_{most_, is_oversubscribed()};
};

}  // namespace

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--ops") settings.ops = argv[i + 1];
    if (flag == "--only") settings.only = argv[i + 1];
    if (flag == "--min") settings.least = std::atoll(argv[i + 1]);
    if (flag == "--max") settings.most = std::atoll(argv[i + 1]);
    if (flag == "--pairs") settings.pairs = std::atoi(argv[i + 1]);
  }
  Comparison{settings}.run();
  return 0;
}
