// collectives [--ops LIST] [--min BYTES] [--max BYTES] [--pairs N] [--only COLUMNS]
//
// Each collective by rankmesh against the plain MPI call on an equal communicator, in one run and
// in pairs: a batch of one, a batch of the other, in turn. A batch's time is that of the slowest
// rank. Printed are the median time of one MPI call, and for each way of rankmesh the median of the
// pairs' ratios (below 1: faster than MPI) with the interval that holds the true median with 95%
// confidence.
//
//   routes   rankmesh's default routes             shm    shared memory whatever the size
//   sym      symmetric buffers                     hand   sym against a loop written by hand
//   (all_reduce)
//
// Bytes are those of a rank's largest buffer. Start it with mpirun (scripts/bench-collectives
// does).
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
      "send_recv";
  std::string only = "routes,shm,sym,hand";
  std::int64_t least = 8;
  std::int64_t most = 64 << 20;
  int pairs = 30;
};

bool contains(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// What a careful programmer would write for this one case: counters in shared memory, every rank
// reduces its slice of all buffers and writes it to all of them.
class ByHand {
 public:
  ByHand(std::size_t count, bool crowded) : crowded_{crowded} {
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
        if (crowded_ && spins > 8) sched_yield();
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
  bool crowded_;
};

using Action = std::function<void()>;

// Seconds per call of the slowest rank.
double batch(const Action& action, int calls) {
  action();  // not counted: whoever ran before used other memory
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
  // Order statistics around the median that hold it with 95% confidence.
  const double half = 0.98 * std::sqrt(n);
  const auto at = [&](double index) {
    return values[static_cast<std::size_t>(std::clamp(index, 0.0, n - 1))];
  };
  return {at((n - 1) / 2), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half) - 1)};
}

struct Way {
  const char* name;
  Action action;  // empty: not for this operation
};

void compare(const std::string& operation, std::int64_t bytes, const Action& by_mpi,
             const std::vector<Way>& ways, const Action& by_hand, const Settings& settings) {
  const double once = batch(by_mpi, 3);
  const int calls = static_cast<int>(std::clamp(5e-4 / once, 1.0, 1000.0));
  std::vector<double> mpi_times;
  std::vector<std::vector<double>> ratios(ways.size());
  std::vector<double> to_hand;
  for (const Way& way : ways)
    if (way.action) batch(way.action, calls);  // warm
  for (int pair = 0; pair < settings.pairs; ++pair)
    for (std::size_t w = 0; w < ways.size(); ++w) {
      if (!ways[w].action) continue;
      // Who comes first changes: what runs behind another finds other caches.
      double mpi = 0;
      double ours = 0;
      if (pair % 2 == 0) mpi = batch(by_mpi, calls);
      ours = batch(ways[w].action, calls);
      if (pair % 2 == 1) mpi = batch(by_mpi, calls);
      mpi_times.push_back(mpi);
      ratios[w].push_back(ours / mpi);
      if (by_hand && std::strcmp(ways[w].name, "sym") == 0)
        to_hand.push_back(ours / batch(by_hand, calls));
    }
  if (rank != 0) return;
  std::printf("%-15s %9lld %11.2f", operation.c_str(), static_cast<long long>(bytes),
              summary(mpi_times).median * 1e6);
  for (std::size_t w = 0; w < ways.size(); ++w) {
    if (ratios[w].empty()) {
      std::printf("   %-19s", "-");
      continue;
    }
    const Summary s = summary(ratios[w]);
    std::printf("   %5.2f (%5.2f..%5.2f)", s.median, s.low, s.high);
  }
  if (!to_hand.empty()) {
    const Summary s = summary(to_hand);
    std::printf("   %5.2f (%5.2f..%5.2f)", s.median, s.low, s.high);
  }
  std::printf("\n");
  std::fflush(stdout);
}

void run(const Settings& settings) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Mesh plain{MPI_COMM_WORLD, "tp=auto"};
  MeshOptions forced;
  forced.routes = "*.*:host=shm";
  Mesh shared{MPI_COMM_WORLD, "tp=auto", forced};
  GroupCoordinator& routes = plain["tp"];
  GroupCoordinator& shm = shared["tp"];

  const auto un = static_cast<std::size_t>(size);
  const std::size_t most =
      std::max<std::size_t>(static_cast<std::size_t>(settings.most) / sizeof(float), un);
  std::vector<float> in(most);
  std::vector<float> out(most);
  const auto symmetric_in = shared.allocate_symmetric<float>(most, {"tp"});
  const auto symmetric_out = shared.allocate_symmetric<float>(most, {"tp"});
  const bool crowded = size > static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  ByHand hand{most, crowded};
  std::fill(symmetric_in.begin(), symmetric_in.end(), 0.0F);
  std::fill(symmetric_out.begin(), symmetric_out.end(), 0.0F);

  if (rank == 0) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(library, &length);
    std::printf("%d ranks, %ld cores, %.*s\n", size, sysconf(_SC_NPROCESSORS_ONLN),
                static_cast<int>(std::strcspn(library, ",")), library);
    std::printf("%-15s %9s %11s   %-19s   %-19s   %-19s   %-19s\n", "operation", "bytes", "MPI, us",
                "routes / MPI", "shm / MPI", "sym / MPI", "sym / by hand");
  }
  const auto wanted = [&](const char* name, Action action) {
    return Way{name, contains(settings.only, name) ? std::move(action) : Action{}};
  };
  const auto hand_wanted = [&](Action action) {
    return contains(settings.only, "hand") ? action : Action{};
  };

  if (contains(settings.ops, "barrier"))
    compare(
        "barrier", 0, [&] { MPI_Barrier(comm); },
        {wanted("routes", [&] { routes.barrier(); }), wanted("shm", [&] { shm.barrier(); })}, {},
        settings);

  for (std::int64_t bytes = settings.least; bytes <= settings.most; bytes *= 4) {
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(float);
    const int n = static_cast<int>(count);
    const std::size_t block = std::max<std::size_t>(1, count / un);
    const int nb = static_cast<int>(block);
    const std::span<float> i{in.data(), count};
    const std::span<float> o{out.data(), count};
    const std::span<float> ib{in.data(), block};
    const std::span<float> ob{out.data(), block};
    const std::span<float> iw{in.data(), block * un};
    const std::span<float> ow{out.data(), block * un};
    const auto so = symmetric_out.subspan(0, count);
    const auto siw = symmetric_in.subspan(0, block * un);
    const auto sow = symmetric_out.subspan(0, block * un);
    const auto sob = symmetric_out.subspan(0, block);
    const auto own = symmetric_out.subspan(block * static_cast<std::size_t>(rank), block);
    const auto whole = static_cast<std::int64_t>(block * un * sizeof(float));

    if (contains(settings.ops, "broadcast"))
      compare(
          "broadcast", bytes, [&] { MPI_Bcast(o.data(), n, MPI_FLOAT, 0, comm); },
          {wanted("routes", [&] { routes.broadcast(o, 0); }),
           wanted("shm", [&] { shm.broadcast(o, 0); }),
           wanted("sym", [&] { shm.broadcast(so, 0); })},
          {}, settings);
    if (contains(settings.ops, "all_reduce"))
      compare(
          "all_reduce", bytes,
          [&] { MPI_Allreduce(MPI_IN_PLACE, o.data(), n, MPI_FLOAT, MPI_SUM, comm); },
          {wanted("routes", [&] { routes.all_reduce(o); }),
           wanted("shm", [&] { shm.all_reduce(o); }), wanted("sym", [&] { shm.all_reduce(so); })},
          hand_wanted([&] { hand.all_reduce(count); }), settings);
    if (contains(settings.ops, "all_gather"))
      compare(
          "all_gather", whole,
          [&] { MPI_Allgather(ib.data(), nb, MPI_FLOAT, ow.data(), nb, MPI_FLOAT, comm); },
          {wanted("routes", [&] { routes.all_gather(ib, ow); }),
           wanted("shm", [&] { shm.all_gather(ib, ow); }),
           wanted("sym", [&] { shm.all_gather(own, sow); })},
          {}, settings);
    if (contains(settings.ops, "reduce_scatter"))
      compare(
          "reduce_scatter", whole,
          [&] { MPI_Reduce_scatter_block(iw.data(), ob.data(), nb, MPI_FLOAT, MPI_SUM, comm); },
          {wanted("routes", [&] { routes.reduce_scatter(iw, ob); }),
           wanted("shm", [&] { shm.reduce_scatter(iw, ob); }),
           wanted("sym", [&] { shm.reduce_scatter(siw, sob); })},
          {}, settings);
    if (contains(settings.ops, "all_to_all"))
      compare(
          "all_to_all", whole,
          [&] { MPI_Alltoall(iw.data(), nb, MPI_FLOAT, ow.data(), nb, MPI_FLOAT, comm); },
          {wanted("routes", [&] { routes.all_to_all(iw, ow); }),
           wanted("shm", [&] { shm.all_to_all(iw, ow); }),
           wanted("sym", [&] { shm.all_to_all(siw, sow); })},
          {}, settings);
    if (contains(settings.ops, "reduce"))
      compare(
          "reduce", bytes, [&] { MPI_Reduce(i.data(), o.data(), n, MPI_FLOAT, MPI_SUM, 0, comm); },
          {wanted("routes", [&] { routes.reduce(i, o, 0); }),
           wanted("shm", [&] { shm.reduce(i, o, 0); })},
          {}, settings);
    if (contains(settings.ops, "gather"))
      compare(
          "gather", whole,
          [&] { MPI_Gather(ib.data(), nb, MPI_FLOAT, ow.data(), nb, MPI_FLOAT, 0, comm); },
          {wanted("routes", [&] { routes.gather(ib, ow, 0); }),
           wanted("shm", [&] { shm.gather(ib, ow, 0); })},
          {}, settings);
    if (contains(settings.ops, "scatter"))
      compare(
          "scatter", whole,
          [&] { MPI_Scatter(iw.data(), nb, MPI_FLOAT, ob.data(), nb, MPI_FLOAT, 0, comm); },
          {wanted("routes", [&] { routes.scatter(iw, ob, 0); }),
           wanted("shm", [&] { shm.scatter(iw, ob, 0); })},
          {}, settings);
    if (contains(settings.ops, "send_recv"))
      compare(
          "send_recv", bytes,
          [&] {
            MPI_Sendrecv(i.data(), n, MPI_FLOAT, (rank + 1) % size, 0, o.data(), n, MPI_FLOAT,
                         (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
          },
          {wanted("routes", [&] { routes.send_recv(i, next, o, prev); })}, {}, settings);
  }
  shared.close();
  plain.close();
  MPI_Comm_free(&comm);
}

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
  run(settings);
  return 0;
}
