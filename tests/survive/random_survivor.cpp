// SPDX-License-Identifier: BSD-3-Clause
// A rank of a job some of whose ranks die at random moments. It checks all values, and prints what
// it learns, for scripts/random-kills, which has chosen what the ranks do and who dies when.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/run.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "shards.hpp"

namespace {

using namespace rankmesh;
using rankmesh_test::Shards;

// Lines of different ranks must not be mixed.
template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string line = fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void require(bool condition, std::string_view what) {
  if (condition) return;
  say("WRONG {}", what);
  std::_Exit(3);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{text};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// A busy machine stops a living rank for a second now and then.
constexpr Deadline::Duration exclude_after{4};

// Continues this process after 0.3 to 8 s: before or after it is excluded.
void continue_later(std::chrono::microseconds wait) {
  const std::string command =
      fmt::format("(sleep {}; kill -CONT {}) >/dev/null 2>&1 &",
                  0.3 + static_cast<double>(wait.count() % 1700) * 0.0045, ::getpid());
  if (std::system(command.c_str()) != 0) std::_Exit(4);
}

// Ends all ranks of this emulated host, or all its processes: the launcher's, too. Or cuts it off.
void end_host(std::string_view how) {
  require(std::filesystem::exists("/dev/shm/rankmesh-hosts"), "this is no emulated host");
  if (how == "cut") {
    require(std::system("ip link set eth0 down") == 0, "the host is not cut off");
    return;
  }
  const auto name_of = [](const std::filesystem::path& process) {
    std::string name;
    std::getline(std::ifstream{process / "comm"}, name);
    return name;
  };
  const std::string own = name_of("/proc/self");
  std::error_code error;
  if (how == "host-and-daemon") ::kill(-1, SIGKILL);
  for (const auto& process : std::filesystem::directory_iterator{"/proc", error})
    if (const int id = std::atoi(process.path().filename().c_str());
        id > 0 && id != ::getpid() && name_of(process) == own)
      ::kill(id, SIGKILL);
  ::kill(::getpid(), SIGKILL);
}

// How this rank dies, or its host: RANK:WAY:PLACE:STEP:MICROSECONDS.
struct Death {
  std::string way;
  std::string
      place;  // a step or its keep, or open, wait, revocation, next, restore, close, finalise
  std::int64_t step = 0;
  std::chrono::microseconds delay{};

  // Dies if this is the place: at once by exit and exception, else after a while, in any function.
  void come_to(std::string_view here, std::int64_t now = 0) {
    if (way.empty() || here != place || ((here == "step" || here == "keep") && step != now)) return;
    const std::string how = std::exchange(way, {});
    if (how == "exit") std::exit(3);
    if (how == "exception") throw std::runtime_error{"a mistake of the program"};
    std::thread{[how, wait = delay] {
      std::this_thread::sleep_for(wait);
      if (how.starts_with("host") || how == "cut") return end_host(how);
      if (how == "stop") continue_later(wait);
      ::kill(::getpid(), how == "fault" ? SIGSEGV : how == "stop" ? SIGSTOP : SIGKILL);
    }}.detach();
  }
};

struct Arguments {
  std::string mesh;
  std::string folder;
  std::vector<std::string> kinds;  // what the ranks do in each step
  Death death;
  Survival survival{};
};

// Does one step on a mesh, and checks its results.
class Steps {
 public:
  Steps(Mesh& mesh, std::string folder)
      : mesh_{mesh},
        folder_{std::move(folder)},
        all_{mesh["world"]},
        size_{static_cast<int>(mesh.size())},
        rank_{static_cast<int>(mesh.rank().value())} {}

  void run(const std::string& kind, std::int64_t step) {
    if (kind == "sum") return sum(all_, 7);
    if (kind == "large") return sum(all_, 300'000);
    if (kind == "message") return message();
    if (kind == "function") return with_function();
    if (kind == "async") return asynchronous();
    if (kind == "blocks") return blocks();
    if (kind == "exchange") return exchange();
    if (kind == "group") return group();
    if (kind == "checkpoint") return checkpoint(step);
    if (kind == "redistribution") return redistribution();
    require(false, kind);
  }
  [[nodiscard]] std::int64_t sum_of(std::int64_t value) {
    all_.all_reduce(std::span{&value, 1});
    return value;
  }

 private:
  void sum(GroupCoordinator& group, std::size_t count) {
    std::vector<double> data(count, rank_ + 1);
    group.all_reduce(std::span{data});
    require(data.front() == size_ * (size_ + 1) / 2.0 && data.back() == data.front(), "the sum");
  }
  void message() {
    std::vector<double> in(20'000), out(in.size(), rank_);
    auto receive = all_.recv_async(std::span{in}, RankInGroup{(rank_ + size_ - 1) % size_});
    all_.send(std::span<const double>{out}, RankInGroup{(rank_ + 1) % size_});
    receive.wait();
    require(in.front() == (rank_ + size_ - 1) % size_ && in.back() == in.front(), "a message");
  }
  void with_function() {
    std::vector<int> data(5, rank_);
    all_.all_reduce(std::span{data}, [](int a, int b) { return a > b ? a : b; });
    require(data.back() == size_ - 1, "the maximum");
  }
  void asynchronous() {
    std::vector<double> first(7, 1), second(50'000, 2);
    auto one = all_.all_reduce_async(std::span{first});
    auto two = all_.all_reduce_async(std::span{second});
    while (!one.test()) {
    }
    two.wait();
    require(first.back() == size_ && second.back() == 2 * size_, "an asynchronous sum");
  }
  void blocks() {
    const Blocks blocks = Blocks::even(9'000 + size_, all_);
    std::vector<double> own(static_cast<std::size_t>(blocks.counts()[mesh_.rank().to_size()]),
                            rank_);
    std::vector<double> data(static_cast<std::size_t>(9'000 + size_));
    all_.all_gather_v(std::span<const double>{own}, std::span{data}, blocks);
    require(data.front() == 0 && data.back() == size_ - 1, "blocks");
  }
  void exchange() {
    constexpr std::size_t each = 300;
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> out(each * ranks), in(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = rank_ * 1000 + static_cast<int>(i / each);
    all_.all_to_all(std::span<const int>{out}, std::span{in});
    for (std::size_t i = 0; i < in.size(); ++i)
      require(in[i] == static_cast<int>(i / each) * 1000 + rank_, "an exchange");
  }
  void group() {
    std::vector<Rank> ranks;
    for (int r = 0; r < size_; ++r) ranks.emplace_back(r);
    const auto group = mesh_.new_group(std::span<const Rank>{ranks});
    sum(*group, 3);
    mesh_.close(group);
  }
  [[nodiscard]] TensorPlacement place(std::string_view axes) const {
    return TensorPlacement::parse(fmt::format("[64,48] f64 @ all={} : {}", size_, axes));
  }
  // The number of each element of the whole tensor.
  [[nodiscard]] std::vector<double> elements_of(const TensorPlacement& placement) const {
    std::vector<double> elements;
    for (const AxisRun& row : placement.runs(mesh_.rank(), 0))
      for (std::int64_t r = 0; r < row.count; ++r)
        for (const AxisRun& column : placement.runs(mesh_.rank(), 1))
          for (std::int64_t c = 0; c < column.count; ++c)
            elements.push_back(static_cast<double>((row.global + r) * 48 + column.global + c));
    return elements;
  }
  void checkpoint(std::int64_t step) {
    const TensorPlacement rows = place("(all, _)"), columns = place("(_, all)");
    const std::vector<double> saved = elements_of(rows);
    const std::string name = fmt::format("step-{}-of-{}", step, size_);
    exchange::save_checkpoint(all_, folder_, name, {{"x", rows, saved}});
    std::vector<double> loaded(columns.local_count(mesh_.rank()));
    exchange::load_checkpoint(all_, folder_ + "/latest", {{"x", columns, loaded}});
    require(loaded == elements_of(columns), "a checkpoint");
  }
  void redistribution() {
    const TensorPlacement rows = place("(all, _)"), columns = place("(_, all)");
    exchange::Redistribution move{all_, plan_transfer(rows, columns)};
    const std::vector<double> source = elements_of(rows);
    std::vector<double> target(columns.local_count(mesh_.rank()));
    for (int time = 0; time < 3; ++time) {
      std::ranges::fill(target, 0);
      move.start(source, target).wait();
      require(target == elements_of(columns), "a redistribution");
    }
  }

  Mesh& mesh_;
  const std::string folder_;
  GroupCoordinator& all_;
  int size_;
  int rank_;
};

std::string text_of(const std::vector<int>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ","));
}

int program(Arguments& arguments) {
  int self = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  Death& death = arguments.death;
  const auto steps = static_cast<std::int64_t>(arguments.kinds.size());
  std::map<std::int64_t, std::int64_t> state{{-1, 1}};  // after each step
  std::vector<int> members;                             // of the mesh, as ranks of the job
  std::optional<Mesh> mesh;
  exchange::KeptTensors kept;
  // How many meshes there were before; -1 on a rank that has not been in one of them.
  std::int64_t generation = 0;
  bool is_lost = false;
  while (true) {
    try {
      if (mesh) {
        death.come_to(is_lost ? "next" : "wait");
        mesh = mesh->next();
        if (!mesh) {
          say("idle {}", self);
          return 0;
        }
        if (generation >= 0) ++generation;
      } else {
        death.come_to("open");
        mesh.emplace(MPI_COMM_WORLD, std::string_view{arguments.mesh},
                     MeshOptions{.survive = arguments.survival});
      }
      if (mesh->is_spare()) {
        generation = -1;
        continue;
      }
      is_lost = false;
      std::vector<int> now(static_cast<std::size_t>(mesh->size()));
      (*mesh)["world"].all_gather(std::span<const int>{&self, 1}, std::span{now});
      members = now;
      (*mesh)["world"].all_reduce(generation, ReduceOp::max);
      Steps work{*mesh, fmt::format("{}/{}", arguments.folder, generation)};
      say("mesh {} of {} from {}", text_of(members), self, mesh->step().value_or(-1));
      Shards shards{*mesh};
      shards.fill(state.at(-1));
      if (const auto step = mesh->step()) {
        (*mesh)["world"].all_reduce(state[*step], ReduceOp::max);  // spare ranks do not know it
        death.come_to("restore");
        const std::string missing = shards.restore(kept, *step);
        if (!missing.empty()) say("missing {}", missing);
        std::int64_t is_missing = missing.empty() ? 0 : 1;
        (*mesh)["world"].all_reduce(is_missing, ReduceOp::max);
        if (is_missing != 0) shards.fill(state.at(*step));  // as from a checkpoint
        require(shards.hold(state.at(*step)), "an element that is restored");
      }
      for (std::int64_t step = mesh->step().value_or(-1) + 1; step < steps; ++step) {
        death.come_to("step", step);
        work.run(arguments.kinds[static_cast<std::size_t>(step)], step);
        const std::int64_t before = state.at(step - 1);
        require(work.sum_of(before) == before * mesh->size(), "the state");
        state[step] = (before * 31 + step * 7 + mesh->size()) % 1'000'003;
        shards.add(state[step] - before);
        require(shards.hold(state[step]), "an element that was kept");
        death.come_to("keep", step);
        shards.keep(kept, step);
        mesh->commit(step);
      }
      death.come_to("close");
      const std::int64_t step = *mesh->step();
      mesh->close();
      say("closed {} of {} with {}", text_of(members), self, state.at(step));
      death.come_to("finalise");
      return 0;
    } catch (const LostRanks& lost) {
      std::vector<std::int64_t> ranks;
      for (const Rank rank : lost.ranks()) ranks.push_back(rank.value());
      if (generation >= 0)
        say("lost {} of {} by {} at {}", fmt::join(ranks, ","), generation, self,
            lost.step().value_or(-1));
      if (!mesh) throw;
      is_lost = true;
      death.come_to("revocation");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const bool has_one_thread = argv[1] == std::string_view{"one"};
  return run(
      argc, argv,
      [&] {
        int self = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &self);
        const std::string_view policy = argv[3];
        Arguments arguments{argv[2], argv[4], split(argv[5], ','), {}, {}};
        arguments.survival.policy = policy == "compact" ? ShrinkPolicy::compact
                                    : policy == "spare" ? ShrinkPolicy::spare
                                                        : ShrinkPolicy::drop_replica;
        if (const char* const silence = std::getenv("SURVIVOR_SILENCE"))
          arguments.survival.silence = Deadline::Duration{std::atof(silence)};
        for (int i = 6; i < argc; ++i) {
          const auto parts = split(argv[i], ':');
          if (parts.at(1) == "stop") arguments.survival.exclude_after = exclude_after;
          if (std::stoi(parts.at(0)) == self)
            arguments.death = {parts.at(1), parts.at(2), std::stoll(parts.at(3)),
                               std::chrono::microseconds{std::stoll(parts.at(4))}};
        }
        return program(arguments);
      },
      RunOptions{.threads =
                     has_one_thread ? mpi::ThreadLevel::single : mpi::ThreadLevel::multiple});
}
