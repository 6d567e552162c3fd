// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/conformance/conformance.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/run.hpp"

namespace rankmesh::conformance {

namespace {

struct KitArguments {
  Table table{};
  unsigned seconds = 60;
};

KitArguments read(int argc, char** argv) {
  KitArguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") {
      arguments.table.share = 12;
    } else if (word == "--seconds") {
      const auto seconds = rankmesh::detail::parse_number<unsigned>(i + 1 < argc ? argv[++i] : "");
      if (seconds.value_or(0) == 0)
        throw UsageError{"--seconds needs a whole number above 0", "write --seconds 60"};
      arguments.seconds = *seconds;
    } else {
      const auto* const facts = std::ranges::find(operation_facts, word, &OperationFacts::name);
      if (facts == std::end(operation_facts))
        throw UsageError{fmt::format("'{}' is no argument and no operation", word),
                         "write --quick, --seconds N, or operations such as all_reduce"};
      arguments.table.operations.push_back(static_cast<Operation>(facts - operation_facts));
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

// Names the call in which a signal ends this process. SIGALRM ends a call that takes too long: a
// transport that blocks cannot be interrupted.
class CallAtSignal {
 public:
  explicit CallAtSignal(unsigned seconds) {
    limit = seconds;
    struct sigaction action {};
    action.sa_handler = end_process;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
      ::sigaction(number, &action, nullptr);
  }
  static void begin(const std::string& call) {
    std::snprintf(at_alarm, sizeof at_alarm, "%s: it has not ended after %u s\n", call.c_str(),
                  limit);
    std::snprintf(at_fault, sizeof at_fault, "%s: a signal ends the process\n", call.c_str());
    ::alarm(limit);
  }
  static void end() { ::alarm(0); }

 private:
  static void end_process(int number) {
    const char* const text = number == SIGALRM ? at_alarm : at_fault;
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0 || number == SIGALRM)
      std::_Exit(1);  // the launcher ends the other ranks
    ::raise(number);
  }
  static inline unsigned limit;
  static inline char at_alarm[512],
      at_fault[512] = "before the first call: a signal ends the process\n";
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
Report check_groups(Mesh& mesh, const Table& table) {
  Report all;
  const auto said = mesh.allocate_symmetric<std::uint8_t>(thrown + 1, {"all"});
  const auto is_first_of_node = [&](std::size_t kind) {
    auto& word = reinterpret_cast<std::uint8_t&>(said.window()->part(0)[kind]);
    return std::atomic_ref{word}.exchange(1) == 0;
  };
  Carrier carrier{.before = CallAtSignal::begin};
  carrier.found = [&](std::size_t kind, const std::string& sentence) {
    if (is_first_of_node(kind)) std::fputs((sentence + "\n").c_str(), stdout);
    std::fflush(stdout);
  };
  for (std::int64_t k = 2; k <= mesh.size() && !all.has_ended_early; ++k) {
    if (mesh.rank() < k) {
      std::vector<Rank> first(static_cast<std::size_t>(k));
      std::iota(first.begin(), first.end(), 0);
      CallAtSignal::begin(fmt::format("the opening for {} ranks", k));
      const auto group = mesh.new_group(first, fmt::format("group_of_{}", k));
      add(all, check(*group, table, carrier));
      CallAtSignal::end();
      if (!all.has_ended_early) mesh.close(group);
    }
    all.has_ended_early = over_ranks(all.has_ended_early ? 1 : 0) > 0;
  }
  return all;
}

// Prints the calls of rank 0 and the wrong results of all ranks. Returns the status.
int judge(const Mesh& mesh, Report report, const Carried& carried, const std::string& name) {
  const bool is_right = over_ranks(std::ssize(report.failures)) == 0;
  const auto print = [&](const auto& operation, const auto&... columns) {
    if (mesh.rank() == 0) fmt::print("{:<16}{:>9}{:>14}{:>10}{:>8}\n", operation, columns...);
  };
  print("operation", "by " + name, "asynchronous", "declined", "wrong");
  std::int64_t all = 0;
  for (std::size_t o = 0; o < operation_count; ++o) {
    const Report::Tally& tally = report.operations[static_cast<Operation>(o)];
    const std::int64_t by_it = carried.blocking[o] + carried.asynchronous[o];
    const std::int64_t wrong = over_ranks(tally.wrong);
    all += by_it;
    if (tally.calls + wrong != 0)  // a call that threw is carried, and not counted
      print(to_string(static_cast<Operation>(o)), carried.blocking[o], carried.asynchronous[o],
            std::max<std::int64_t>(0, tally.calls - by_it), wrong);
  }
  if (mesh.rank() == 0 && all == 0)
    fmt::print("'{}' has carried no call: supports() declined all of them\n", name);
  else if (mesh.rank() == 0 && is_right)
    fmt::print("all results are right, in groups of 2 to {} ranks\n", mesh.size());
  return over_ranks(all) > 0 && is_right ? 0 : 1;
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
    const CallAtSignal names{arguments.seconds};
    names.begin("the opening for all ranks");
    Mesh mesh{MPI_COMM_WORLD, "all=auto", options};
    names.end();
    if (mesh.size() == 1)
      throw UsageError{"one rank has no group that a transport could be opened for",
                       "start at least 2 ranks"};
    const Report report = check_groups(mesh, arguments.table);
    const int status = judge(mesh, report, *carried, name);
    if (report.has_ended_early)
      throw Error{fmt::format("a call over '{}' has thrown, so the rest was not run", name)};
    mesh.close();
    return status;
  });
}

}  // namespace rankmesh::conformance
