// SPDX-License-Identifier: BSD-3-Clause
// A rank of a job some of whose ranks are killed. It prints what it learns, for
// tests/survive/check.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device_steps.hpp"
#include "meeting_place.hpp"
#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "shards.hpp"
#include "ways_to_die.hpp"

namespace {

using namespace rankmesh;

constexpr std::int64_t steps = 20;
constexpr std::int64_t step_of_death = 5;

struct Arguments {
  std::string mesh;
  std::string kind;        // what the ranks do when ranks die
  std::vector<int> first;  // they die in step 5, or where the kind says; spare ones while they wait
  std::vector<int> second;    // they die after the first loss
  useconds_t wait_of_second;  // microseconds after they have learned of it
};

std::vector<int> list_of(std::string_view text) {
  std::vector<int> ranks;
  while (!text.empty() && text != "-") {
    const auto comma = text.find(',');
    ranks.push_back(std::atoi(std::string{text.substr(0, comma)}.c_str()));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return ranks;
}

using rankmesh_test::die;
using rankmesh_test::file_of_loss;
using rankmesh_test::make_next_creation_slow;
using rankmesh_test::require;
using rankmesh_test::slow_news;
using rankmesh_test::stamp;

// Where an excluded rank writes before it ends.
std::span<int> old_memory;

// Does one step on a mesh, and checks its results.
class Steps {
 public:
  /// @param survival  Of a second mesh, where the first one hears of a death after it.
  Steps(Mesh& mesh, const std::string& kind, MPI_Comm of_program, const Survival& survival)
      : mesh_{mesh}, kind_{kind}, all_{mesh["world"]} {
    if (kind == "adopted" && of_program != MPI_COMM_NULL)
      adopted_ = mesh.adopt(of_program, "adopted");
    if (kind.starts_with("second mesh") && of_program != MPI_COMM_NULL)
      second_.emplace(of_program, "all=auto",
                      kind == "second mesh" ? MeshOptions{} : MeshOptions{.survive = survival});
    if (is_slow(kind) && mesh["dp"].size() == mesh.size()) {
      symmetric_.emplace(mesh.allocate_symmetric<int>(8, {"dp"}));
      old_memory = {symmetric_->data(), symmetric_->size()};
    }
  }
  // Whether the first ranks do not die, but are excluded.
  static bool is_slow(std::string_view kind) { return kind == "slow" || kind.starts_with("stop"); }
  void step() {
    if (kind_.starts_with("device")) return rankmesh_test::device_step(mesh_, kind_);
    if (kind_ == "message") return message();
    if (kind_ == "function") return with_function();
    if (kind_ == "test") return test();
    if (kind_ == "group") return group();
    if (kind_.ends_with("transport")) return all_.barrier();
    const bool is_on_second = second_ && !kind_.ends_with("on the first");
    sum(adopted_       ? *adopted_
        : is_on_second ? (*second_)["all"]
                       : all_,
        kind_ == "large" ? 300'000 : 7);
    if (kind_ == "gather") gather();
    if (symmetric_) sum_in_place();
    if (kind_ == "stop in save") save();
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(mesh_.size()); }
  [[nodiscard]] int rank() const { return static_cast<int>(mesh_.rank().value()); }

  void sum(GroupCoordinator& group, std::size_t count) {
    std::vector<double> data(count, rank() + 1);
    group.all_reduce(std::span{data});
    require(data.back() == size() * (size() + 1) / 2, "the sum");
  }
  void sum_in_place() {
    const std::span<int> data{symmetric_->data(), symmetric_->size()};
    std::ranges::fill(data, rank() + 1);
    mesh_["dp"].all_reduce(*symmetric_);
    require(data.back() == size() * (size() + 1) / 2, "the sum in symmetric memory");
  }
  void save() {
    const auto place =
        TensorPlacement::parse(fmt::format("[{},3] f64 @ all={} : (all, _)", size(), size()));
    const std::vector<double> data(3, rank());
    exchange::save_checkpoint(all_, std::getenv("SURVIVOR_FOLDER"),
                              fmt::format("{}-of-{}", saves_++, size()), {{"x", place, data}});
  }
  // Large enough for MPI.
  void message() {
    std::vector<double> in(200'000), out(in.size(), rank());
    auto receive = all_.recv_async(std::span{in}, RankInGroup{(rank() + size() - 1) % size()});
    all_.send(std::span<const double>{out}, RankInGroup{(rank() + 1) % size()});
    receive.wait();
    require(in.front() == (rank() + size() - 1) % size() && in.back() == in.front(), "a message");
  }
  void with_function() {
    std::vector<int> data(5, rank());
    all_.all_reduce(std::span{data}, [](int a, int b) { return a > b ? a : b; });
    require(data.back() == size() - 1, "the maximum");
  }
  void test() {
    std::vector<double> data(7, 1);
    auto work = all_.all_reduce_async(std::span{data});
    while (!work.test()) {
    }
    require(data.back() == size(), "an asynchronous sum");
  }
  void group() {
    std::vector<Rank> ranks;
    for (int r = 0; r < size(); ++r) ranks.emplace_back(r);
    const auto group = mesh_.new_group(std::span<const Rank>{ranks});
    sum(*group, 3);
    mesh_.close(group);
  }
  void gather() {
    const Blocks blocks = Blocks::even(90'000 + size(), all_);
    std::vector<double> own(static_cast<std::size_t>(blocks.counts()[mesh_.rank().to_size()]),
                            rank());
    std::vector<double> data(static_cast<std::size_t>(90'000 + size()));
    all_.all_gather_v(std::span<const double>{own}, std::span{data}, blocks);
    require(data.front() == 0 && data.back() == size() - 1, "blocks");
  }

  Mesh& mesh_;
  const std::string& kind_;
  GroupCoordinator& all_;
  std::shared_ptr<GroupCoordinator> adopted_;
  std::optional<Mesh> second_;
  std::optional<SymmetricSpan<int>> symmetric_;
  int saves_ = 0;
};

void restore(Mesh& mesh, rankmesh_test::Shards& shards, exchange::KeptTensors& kept,
             std::int64_t step) {
  const std::string missing = shards.restore(kept, step);
  int is_missing = missing.empty() ? 0 : 1;
  if (is_missing != 0) fmt::print("missing {}\n", missing);
  mesh["world"].all_reduce(is_missing, ReduceOp::max);
  if (is_missing != 0) shards.fill(step);  // as from a checkpoint
  require(shards.hold(step), "an element that is restored");
}

// The last ranks are spare if the mesh does not take all.
ShrinkPolicy policy_for(std::string_view mesh, MPI_Comm world) {
  int size = 0;
  MPI_Comm_size(world, &size);
  return MeshSpec::parse(mesh).world_size() < size ? ShrinkPolicy::spare
                                                   : ShrinkPolicy::drop_replica;
}

// How a rank of the first ones dies. In some kinds, the others follow the first of them.
std::string way_of(const Arguments& arguments, int self) {
  const std::string& kind = arguments.kind;
  const bool is_other = self != arguments.first.front();
  if (is_other && kind == "exit in thread") ::usleep(50'000);
  return is_other && (kind == "exit in thread" || kind == "stop for ever and kill") ? "" : kind;
}

// The ranks of a second mesh have other numbers. A small one has the ranks that die first, and
// those beside them.
MPI_Comm communicator_of_program(MPI_Comm world, int self, const Arguments& arguments) {
  const bool is_second = arguments.kind.starts_with("second mesh");
  const bool is_left_out =
      arguments.kind.starts_with("second mesh, small") &&
      (self < arguments.first.front() - 1 || self > arguments.first.back() + 1);
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_split(world, is_left_out ? MPI_UNDEFINED : 0, is_second ? -self : self, &own);
  return own;
}

// Returns whether a commit succeeds after one in which the ranks have committed different steps.
bool is_committed(Mesh& mesh, std::int64_t step) {
  try {
    (void)mesh.commit(step);
  } catch (const Error&) {
    return false;
  }
  return true;
}

int run(const Arguments& arguments) {
  int self = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  // NCCL takes the ranks for ranks of several hosts, and reports that the connection to one has
  // ended.
  if (arguments.kind == "device, hosts") ::setenv("NCCL_HOSTID", std::to_string(self).c_str(), 1);
  if (arguments.kind.starts_with("ask")) ::signal(SIGTERM, [](int) { Mesh::request_stop(); });
  const auto is_in = [&](const std::vector<int>& list) {
    return std::ranges::find(list, self) != list.end();
  };
  Survival survival;
  if (const char* const text = std::getenv("SURVIVOR_SILENCE"))
    survival.silence = std::chrono::duration<double>{std::atof(text)};
  if (const char* const text = std::getenv("SURVIVOR_EXCLUDE"))
    survival.exclude_after = std::chrono::duration<double>{std::atof(text)};
  // The last rank has no part in the mesh, and does nothing.
  MPI_Comm world = MPI_COMM_WORLD;
  if (arguments.kind == "part") {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, self == size - 1 ? 1 : 0, self, &world);
    if (self == size - 1) return 0;
  }
  survival.policy = policy_for(arguments.mesh, world);
  MeshOptions options{.survive = survival};
  if (arguments.kind.ends_with("transport")) {
    options.routes = "*.barrier=meeting_place";
    options.transports["meeting_place"] = [&](const TransportGroup& group) {
      return std::make_unique<rankmesh_test::MeetingPlace>(group, arguments.kind != "transport");
    };
  }
  MPI_Comm of_program = communicator_of_program(world, self, arguments);
  if (arguments.kind == "device opening" && is_in(arguments.first))
    std::thread{[] {
      rankmesh_test::await_nccl();
      ::usleep(200'000);  // the fault "late" keeps it in the creation of its communicators
      die();
    }}.detach();
  std::optional<Mesh> mesh{std::in_place, world, std::string_view{arguments.mesh}, options};
  struct sigaction of_pipes {};
  ::sigaction(SIGPIPE, nullptr, &of_pipes);
  require(of_pipes.sa_handler == SIG_IGN, "a message to a dead rank ends this one");
  exchange::KeptTensors kept;
  int losses = 0;
  bool is_lost = false;
  std::optional<rankmesh_test::CapturedStream> captured;
  while (true) {
    try {
      if (mesh->is_spare() && is_in(arguments.first))
        std::thread{[way = arguments.kind == "stop for ever" ? arguments.kind : ""] {
          ::usleep(50'000);
          die(way);
        }}.detach();
      if (mesh->is_spare() && arguments.kind == "slow creation") rankmesh_test::sleep_long();
      if (is_lost || mesh->is_spare()) mesh = mesh->next();
      captured.reset();
      if (std::exchange(is_lost, false)) stamp("mesh");
      if (!mesh) {
        fmt::print("idle {}\n", self);
        return 0;
      }
      Steps work{*mesh, arguments.kind, losses == 0 ? of_program : MPI_COMM_NULL, survival};
      const std::int64_t first = mesh->step().value_or(-1) + 1;
      rankmesh_test::Shards shards{*mesh, arguments.kind.starts_with("device")};
      shards.fill(-1);
      if (first > 0) restore(*mesh, shards, kept, first - 1);
      const bool dies = losses == 0 && is_in(arguments.first);
      for (std::int64_t step = first; step < first + steps; ++step) {
        // The victim waits for the others, and is stopped meanwhile. Later they do so until it
        // comes back.
        if (arguments.kind == "stop in wait" && losses == 0 && step == step_of_death && !dies)
          ::usleep(600'000);
        if (Steps::is_slow(arguments.kind) && losses != 0) ::usleep(150'000);
        // Spare ranks die before, or begin to sleep long.
        if ((arguments.kind == "spare" || arguments.kind == "stop for ever" ||
             arguments.kind == "slow creation") &&
            step == step_of_death)
          ::usleep(arguments.kind == "spare" ? 2'000'000 : 400'000);
        if (arguments.kind.starts_with("second mesh, ") && losses == 0 && step == step_of_death)
          slow_news.lose();
        if (arguments.kind == "wish without place") {
          if (losses != 0) ::usleep(20'000);
          if (step == step_of_death && self + 1 == arguments.first.front()) Mesh::request_stop();
        }
        if (dies && step == step_of_death && arguments.kind != "close" &&
            arguments.kind != "device close" && arguments.kind != "commit" &&
            !arguments.kind.starts_with("differ")) {
          // The others see that the connections are closed, a while before they hear of the death.
          if (arguments.kind == "device, hosts") {
            mesh->abort();
            ::usleep(300'000);
          }
          // The others have ended the last commit, which is on the first mesh, and wait on the
          // second.
          if (arguments.kind == "second mesh, slow news") ::usleep(300'000);
          die(way_of(arguments, self));
        }
        work.step();
        shards.add(1);
        shards.keep(kept, step);
        if (dies && step == step_of_death && arguments.kind == "commit") die();
        // Some ranks have said that they have completed the step, and others have not.
        if (arguments.kind == "commit" && losses == 0 && step == step_of_death && self % 2 != 0)
          ::usleep(500'000);
        const bool differs = dies && step == step_of_death && arguments.kind.starts_with("differ");
        const std::int64_t other = arguments.kind == "differ back" ? step - 1 : step + 1;
        try {
          if (mesh->commit(differs ? other : step)) break;
        } catch (const MismatchError&) {
          if (is_committed(*mesh, step + 1)) fmt::print("WRONG: a commit after different steps\n");
          throw;
        }
      }
      if (dies && arguments.kind == "device close")
        std::thread{[] {
          rankmesh_test::await_nccl();
          die();
        }}.detach();
      else if (dies && arguments.kind != "ask")
        die();
      mesh->close();
      fmt::print("closed {} of {} at {}\n", mesh->rank().value(), mesh->size(), *mesh->step());
      return 0;
    } catch (const LostRanks& lost) {
      // It has learned of another death before its own.
      if (losses == 0 && is_in(arguments.first) && arguments.kind != "ask")
        die(way_of(arguments, self));
      stamp("error");
      std::vector<std::int64_t> ranks;
      for (const Rank rank : lost.ranks()) ranks.push_back(rank.value());
      fmt::print("lost {} {} {}: {}\n", ++losses, fmt::join(ranks, ","), lost.step().value_or(-1),
                 lost.message());
      std::fflush(stdout);
      is_lost = true;
      if (Steps::is_slow(arguments.kind)) std::ofstream{file_of_loss()};
      if (arguments.kind == "slow news" && losses == 1) slow_news.begin();
      if (arguments.kind == "slow creation" && self == 0) make_next_creation_slow();
    } catch (const Error&) {
      std::ranges::fill(old_memory, 99);  // nobody reads it
      throw;
    }
    if (losses != 1 || !is_in(arguments.second)) continue;
    if (arguments.kind == "slow news") {
      slow_news.die_in_next();
    } else if (arguments.kind == "device broken") {
      rankmesh_test::break_device();
    } else if (arguments.kind == "device captured") {
      captured.emplace();
    } else if (arguments.kind == "fail in next") {
      ::setenv("RANKMESH_TIMEOUT", "soon", 1);
    } else {
      if (arguments.wait_of_second == 0)
        die(arguments.kind == "stop for ever and fail" ? "exception" : "");
      std::thread{[wait = arguments.wait_of_second] {
        ::usleep(wait);
        die();
      }}.detach();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const mpi::Environment environment{mpi::ThreadLevel::multiple};
  // When a host is lost, mpirun sometimes loses what the ranks of other hosts print.
  if (const char* const folder = std::getenv("SURVIVOR_OUTPUT")) {
    int self = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    if (std::freopen(fmt::format("{}/{}", folder, self).c_str(), "w", stdout) == nullptr) return 2;
  }
  const int status = run({argv[1], argv[2], list_of(argv[3]), list_of(argv[4]),
                          static_cast<useconds_t>(std::atoi(argv[5]))});
  std::fflush(stdout);
  return status;
}
