// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/conformance/conformance.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/run.hpp"

namespace rankmesh::conformance {

namespace {

struct KitArguments {
  Table table{};
  std::chrono::seconds limit{60};
};

KitArguments read(int argc, char** argv) {
  KitArguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") {
      arguments.table.share = 12;
    } else if (word == "--seconds" && i + 1 < argc) {
      arguments.limit = std::chrono::seconds{std::max(1, std::atoi(argv[++i]))};
    } else {
      const auto before = arguments.table.operations.size();
      for (std::size_t o = 0; o < operation_count; ++o)
        if (to_string(static_cast<Operation>(o)) == word)
          arguments.table.operations.push_back(static_cast<Operation>(o));
      if (arguments.table.operations.size() == before)
        throw UsageError{fmt::format("'{}' is no argument and no operation", word),
                         "write --quick, --seconds N, or operations such as all_reduce"};
    }
  }
  return arguments;
}

// What the transport has carried.
struct Carried {
  std::array<std::int64_t, operation_count> blocking{}, asynchronous{};
};

// Counts the calls of a transport.
class Counted final : public Transport {
 public:
  Counted(std::unique_ptr<Transport> own, std::shared_ptr<Carried> carried)
      : own_{std::move(own)}, carried_{std::move(carried)} {}
  [[nodiscard]] bool supports(const Call& call) const override { return own_->supports(call); }
  [[nodiscard]] std::string why_not(const Call& call) const override { return own_->why_not(call); }
  void run(const Call& call, Waiter& waiter) override {
    ++carried_->blocking[static_cast<std::size_t>(call.operation)];
    own_->run(call, waiter);
  }
  [[nodiscard]] bool has_async_forms() const override { return own_->has_async_forms(); }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override {
    ++carried_->asynchronous[static_cast<std::size_t>(call.operation)];
    return own_->start(call);
  }
  void give_up(const Error& why) override { own_->give_up(why); }

 private:
  std::unique_ptr<Transport> own_;
  std::shared_ptr<Carried> carried_;
};

// Ends the job if a call takes too long: a transport that blocks cannot be interrupted.
class Watch {
 public:
  explicit Watch(std::chrono::seconds limit) : limit_{limit}, thread_{[this] { watch(); }} {}
  ~Watch() {
    {
      const std::lock_guard lock{mutex_};
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Begins to measure the time of a call. An empty text: there is none.
  void begin(std::string call) {
    const std::lock_guard lock{mutex_};
    call_ = std::move(call);
    since_ = std::chrono::steady_clock::now();
  }

 private:
  void watch() {
    std::unique_lock lock{mutex_};
    while (!changed_.wait_for(lock, std::chrono::milliseconds{200}, [&] { return is_over_; })) {
      if (call_.empty() || std::chrono::steady_clock::now() - since_ < limit_) continue;
      std::fputs(fmt::format("{}: it has not ended after {} s\n", call_, limit_.count()).c_str(),
                 stderr);
      std::_Exit(1);  // the launcher ends the other ranks
    }
  }

  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::string call_;
  std::chrono::steady_clock::time_point since_{};
  std::thread thread_;
};

void add(Report& all, const Report& more) {
  for (const auto& [operation, tally] : more.operations) {
    all.operations[operation].calls += tally.calls;
    all.operations[operation].wrong += tally.wrong;
  }
  all.failures.insert(all.failures.end(), more.failures.begin(), more.failures.end());
  all.has_ended_early = all.has_ended_early || more.has_ended_early;
}

// Returns the sums over the ranks.
std::int64_t over_ranks(std::int64_t value) {
  mpi::check(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD),
             "MPI_Allreduce");
  return value;
}

// Runs the table in groups of the first 2, 3, ... ranks, each of which the transport is opened for.
// After a call that threw, no rank goes on to the next group: the others would wait in it.
Report check_groups(Mesh& mesh, const Table& table, Watch& watch) {
  Report all;
  for (std::int64_t k = 2; k <= mesh.size() && !all.has_ended_early; ++k) {
    if (mesh.rank() < k) {
      std::vector<Rank> first(static_cast<std::size_t>(k));
      std::iota(first.begin(), first.end(), 0);
      const auto group = mesh.new_group(first, fmt::format("group_of_{}", k));
      add(all, check(*group, table, [&](const std::string& call) { watch.begin(call); }));
      watch.begin({});
      if (!all.has_ended_early) mesh.close(group);
    }
    all.has_ended_early = over_ranks(all.has_ended_early ? 1 : 0) > 0;
  }
  return all;
}

// Prints what rank 0 has counted. Returns how many calls the transport has carried.
std::int64_t print_table(const Report& report, const Carried& carried, const std::string& name) {
  const std::int64_t all = std::accumulate(
      carried.asynchronous.begin(), carried.asynchronous.end(),
      std::accumulate(carried.blocking.begin(), carried.blocking.end(), std::int64_t{0}));
  fmt::print("{:<16}{:>9}{:>14}{:>10}{:>8}\n", "operation", "by " + name, "asynchronous",
             "declined", "wrong");
  for (const auto& [operation, tally] : report.operations) {
    const auto o = static_cast<std::size_t>(operation);
    const std::int64_t by_it = carried.blocking[o] + carried.asynchronous[o];
    fmt::print("{:<16}{:>9}{:>14}{:>10}{:>8}\n", to_string(operation), carried.blocking[o],
               carried.asynchronous[o],
               // A call that threw is carried, and not counted.
               std::max<std::int64_t>(0, tally.calls - by_it), tally.wrong);
  }
  return all;
}

int judge(const Mesh& mesh, const Report& report, const Carried& carried, const std::string& name) {
  for (const std::string& failure : report.failures) std::fputs((failure + "\n").c_str(), stdout);
  std::fflush(stdout);
  const std::int64_t wrong = over_ranks(std::ssize(report.failures));
  std::int64_t all = 0;
  if (mesh.rank() == 0) {
    all = print_table(report, carried, name);
    if (all == 0)
      fmt::print("'{}' has carried no call: supports() declined all of them\n", name);
    else if (wrong == 0)
      fmt::print("all results are right, in groups of 2 to {} ranks\n", mesh.size());
  }
  return over_ranks(all) > 0 && wrong == 0 ? 0 : 1;
}

}  // namespace

int check_transport(int argc, char** argv, const std::string& name,
                    const TransportFactory& factory) {
  return run(argc, argv, [&] {
    const KitArguments arguments = read(argc, argv);
    const auto carried = std::make_shared<Carried>();
    MeshOptions options;
    options.routes = fmt::format("*.*:host={}", name);
    options.transports[name] = [&](const TransportGroup& group) -> std::unique_ptr<Transport> {
      auto own = factory(group);
      if (own == nullptr) return nullptr;
      return std::make_unique<Counted>(std::move(own), carried);
    };
    Mesh mesh{MPI_COMM_WORLD, "all=auto", options};
    if (mesh.size() == 1)
      throw UsageError{"one rank has no group that a transport could be opened for",
                       "start at least 2 ranks"};
    Watch watch{arguments.limit};
    const Report report = check_groups(mesh, arguments.table, watch);
    const int status = judge(mesh, report, *carried, name);
    if (!report.has_ended_early) mesh.close();
    return status;
  });
}

}  // namespace rankmesh::conformance
