// SPDX-License-Identifier: BSD-3-Clause
// redistribution [--sizes LIST] [--cases TEXT] [--rounds N] [--list]
//
// Moves square matrices of doubles between two layouts: by rankmesh (Redistribution), by hand
// (packed blocks and MPI_Alltoallv), with datatypes (MPI_Alltoallw), and by COSTA and ScaLAPACK if
// the build has found them. All ways take turns in one run; the time of one call is that of the
// slowest rank. Every way must give the same matrix. It prints the median time of rankmesh in
// steady state, and of each other way the median of (its time / rankmesh's time) with its 95 %
// confidence interval, and the ratio of the least times. `--list` moves 36,096 small tensors, and
// one tensor with as many bytes.
//
//     scripts/run-mpi 8 build/benchmarks/redistribution --sizes 2048,8192
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "redistribution.hpp"

using namespace rankmesh;
using bench::Division;
using bench::Job;
using bench::Move;
using bench::Side;

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::vector<int> sizes{2048, 4096, 8192};
  std::string cases;
  int rounds = 15;
  bool has_list = false;
};

struct Case {
  std::string name;
  Side from, to;
  int replicas = 1;  // of the source; the other ways take the first one
};

struct Grid {
  int rows, columns;
};

Side side(int n, Grid grid, Grid block, int first_rank = 0) {
  Side result{{n, grid.rows, block.rows}, {n, grid.columns, block.columns}};
  for (int i = 0; i < grid.rows * grid.columns; ++i)
    result.ranks.push_back((i + first_rank) % (grid.rows * grid.columns));
  return result;
}
Side blocks(int n, Grid grid, int first_rank = 0) {
  return side(n, grid, {n / grid.rows, n / grid.columns}, first_rank);
}

std::string text(Grid grid) {
  return std::to_string(grid.rows) + "x" + std::to_string(grid.columns);
}

std::vector<Case> cases_of(int n, int ranks) {
  int root = 1;
  while (4 * root * root <= ranks) root *= 2;
  const Grid a{root, ranks / root};
  const Grid b = a.rows == a.columns ? Grid{a.rows / 2, a.columns * 2} : Grid{a.columns, a.rows};
  const std::string grids = text(a) + " -> " + text(b);
  const Grid half{1, ranks / 2};
  return {{"128 -> 128, " + grids, side(n, a, {128, 128}), side(n, b, {128, 128})},
          {"36 -> 128, " + text(a), side(n, a, {36, 36}), side(n, a, {128, 128})},
          {"blocks, " + grids, blocks(n, a), blocks(n, b)},
          {"rows -> columns", blocks(n, {ranks, 1}), blocks(n, {1, ranks})},
          {"TP" + std::to_string(ranks) + " -> TP" + std::to_string(ranks / 2),
           blocks(n, {1, ranks}), blocks(n, half)},
          {"rotation", blocks(n, {ranks, 1}), blocks(n, {ranks, 1}, 1)},
          {"2 replicas -> columns", blocks(n, {ranks / 2, 1}), blocks(n, {1, ranks}), 2}};
}

std::string axis_text(const char* name, const Division& axis) {
  if (axis.members == 1) return "_";
  return axis.block * axis.members == axis.length
             ? name
             : name + (":cyclic(" + std::to_string(axis.block) + ")");
}

TensorPlacement placement(const Side& side, int replicas) {
  std::string line = "[" + std::to_string(side.rows.length) + "," +
                     std::to_string(side.columns.length) + "] f64 @ ";
  std::string mesh = replicas > 1 ? "dp=" + std::to_string(replicas) : "";
  const auto add = [&](const char* name, int members) {
    if (members > 1)
      mesh += (mesh.empty() ? "" : ",") + std::string{name} + "=" + std::to_string(members);
  };
  add("r", side.rows.members);
  add("c", side.columns.members);
  line += mesh.empty() ? "w=1" : mesh;
  if (side.ranks.front() != 0)
    line += " on " + std::to_string(side.ranks.front()) + "-" +
            std::to_string(side.ranks.size() - 1) + ",0";
  return TensorPlacement::parse(line + " : (" + axis_text("r", side.rows) + ", " +
                                axis_text("c", side.columns) + ")");
}

struct Summary {
  double median, low, high;
};

Summary summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double half = 0.98 * std::sqrt(n);  // 95 %, from order statistics
  const auto at = [&](double index) {
    return values[static_cast<std::size_t>(std::clamp(index, 0.0, n - 1))];
  };
  return {at((n - 1) / 2), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half) - 1)};
}

// Returns the seconds of one call on the slowest rank.
double time_of(const Move& move, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) move();
  double time = std::chrono::duration<double>(Clock::now() - start).count() / calls;
  MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return time;
}

struct Timed {
  std::string name;
  Move move;
  double first = 0;  // seconds, with the preparation
  std::vector<double> times{};
};

// All ways take turns, and each round begins with another one.
void measure(std::vector<Timed>& ways, int rounds) {
  const int calls = static_cast<int>(std::clamp(0.02 / time_of(ways[0].move, 1), 1.0, 50.0));
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Timed& way = ways[(i + static_cast<std::size_t>(round)) % ways.size()];
      way.times.push_back(time_of(way.move, calls));
    }
}

Summary ratio(const Timed& other, const Timed& ours) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.times.size(); ++i)
    ratios.push_back(other.times[i] / ours.times[i]);
  return summary(ratios);
}

double least(const Timed& way) { return *std::ranges::min_element(way.times); }

class Benchmark {
 public:
  explicit Benchmark(Settings settings) : settings_{std::move(settings)} {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  void run() {
    if (rank_ == 0)
      std::printf("%d ranks; time of rankmesh, then (time of the other way / time of rankmesh)\n",
                  size_);
    if (settings_.has_list) {
      list();
    } else {
      for (const int n : settings_.sizes)
        for (const Case& one : cases_of(n, size_))
          if (one.name.find(settings_.cases) != std::string::npos) matrix(n, one);
    }
    mesh_.close();
  }

 private:
  // The element in row i and column j is i * n + j.
  template <class Use>
  void for_each(const Side& side, int rank, Use&& use) const {
    const int r = side.row_of(rank), c = side.column_of(rank);
    if (r < 0) return;
    const auto width = static_cast<std::size_t>(side.local_columns(rank));
    for (int i = 0; i < side.rows.length; ++i)
      for (int j = 0; side.rows.owner(i) == r && j < side.columns.length; ++j)
        if (side.columns.owner(j) == c)
          use(static_cast<std::size_t>(side.rows.local(i)) * width +
                  static_cast<std::size_t>(side.columns.local(j)),
              static_cast<double>(i) * side.columns.length + j);
  }

  void matrix(int n, const Case& one) {
    // Replicas lie behind each other, as along the dimension dp.
    const int holder = rank_ % static_cast<int>(one.from.ranks.size());
    std::vector<double> source(one.from.local_size(one.replicas > 1 ? holder : rank_));
    std::vector<double> target(one.to.local_size(rank_));
    for_each(one.from, one.replicas > 1 ? holder : rank_,
             [&](std::size_t at, double value) { source[at] = value; });
    const Job job{one.from, one.to, source.data(), target.data(), MPI_COMM_WORLD, rank_, size_};

    std::vector<Timed> ways;
    const auto add = [&](const std::string& name, const std::function<Move()>& prepare) {
      std::fill(target.begin(), target.end(), -1.0);
      MPI_Barrier(MPI_COMM_WORLD);
      const auto start = Clock::now();
      Move move = prepare();
      move();
      const double first = std::chrono::duration<double>(Clock::now() - start).count();
      std::int64_t wrong = 0;
      for_each(one.to, rank_,
               [&](std::size_t at, double value) { wrong += target[at] == value ? 0 : 1; });
      MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
      if (wrong != 0 && rank_ == 0)
        std::printf("%s: %s has moved %lld elements to wrong places\n", one.name.c_str(),
                    name.c_str(), static_cast<long long>(wrong));
      ways.push_back({name, std::move(move), first});
    };
    add("rankmesh", [&] { return ours(one, source, target); });
    add("Alltoallv", [&] { return bench::hand_packed(job); });
    add("Alltoallw", [&] { return bench::by_datatypes(job); });
    for (const bench::Way& way : bench::other_ways())
      add(way.name, [&] { return way.prepare(job); });
    measure(ways, settings_.rounds);
    print(one.name, n, ways);
  }

  Move ours(const Case& one, std::vector<double>& source, std::vector<double>& target) {
    auto move = std::make_shared<exchange::Redistribution>(
        mesh_["tp"], plan_transfer(placement(one.from, one.replicas), placement(one.to, 1)));
    read_ = move->bytes_read_directly();
    return [move, &source, &target] { move->start(source, target).wait(); };
  }

  void print(const std::string& name, int n, const std::vector<Timed>& ways) {
    MPI_Allreduce(MPI_IN_PLACE, &read_, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank_ != 0) return;
    const double time = summary(ways[0].times).median;
    std::printf("%-24s %5d %8.2f ms %6.1f GB/s %s first %7.1f ms", name.c_str(), n, time * 1e3,
                8.0 * n * n / time * 1e-9, read_ > 0 ? "direct  " : "messages",
                ways[0].first * 1e3);
    for (std::size_t i = 1; i < ways.size(); ++i) {
      const Summary s = ratio(ways[i], ways[0]);
      std::printf("  %s %.2f (%.2f..%.2f, least %.2f)", ways[i].name.c_str(), s.median, s.low,
                  s.high, least(ways[i]) / least(ways[0]));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  // Many small tensors in one go, against one tensor with the same bytes.
  void list() {
    constexpr std::int64_t count = 36'096;
    const auto place = [](std::int64_t rows, int ranks) {
      return TensorPlacement::parse("[" + std::to_string(rows) +
                                    ",116] bf16 @ tp=" + std::to_string(ranks) + " : (tp, _)");
    };
    const TensorPlacement small_from = place(128, size_), small_to = place(128, size_ / 2);
    const TensorPlacement from = place(128 * count, size_), to = place(128 * count, size_ / 2);
    std::vector<BFloat16> source(static_cast<std::size_t>(from.local_count(mesh_.rank())));
    std::vector<BFloat16> target(static_cast<std::size_t>(to.local_count(mesh_.rank())));
    const auto share = [&](std::vector<BFloat16>& memory, std::int64_t i) {
      const std::size_t n = memory.size() / count;
      return std::span{memory}.subspan(static_cast<std::size_t>(i) * n, n);
    };
    std::vector<exchange::TensorSource> sources;
    std::vector<exchange::TensorTarget> targets;
    std::vector<TensorTransfer> tensors;
    for (std::int64_t i = 0; i < count; ++i) {
      tensors.push_back({small_from, small_to});
      sources.emplace_back(share(source, i));
      targets.emplace_back(share(target, i));
    }
    std::vector<Timed> ways;
    exchange::Redistribution many{mesh_["tp"], plan_transfer(tensors)};
    exchange::Redistribution one{mesh_["tp"], plan_transfer(from, to)};
    ways.push_back({"one tensor", [&] { one.start(source, target).wait(); }});
    ways.push_back({"36,096 tensors", [&] { many.start(sources, targets).wait(); }});
    for (Timed& way : ways) way.move();
    measure(ways, settings_.rounds);
    if (rank_ != 0) return;
    const Summary s = ratio(ways[1], ways[0]);
    std::printf("36,096 tensors, %.2f GB: %.1f ms; %.2f (%.2f..%.2f) times as long as one tensor\n",
                2.0 * 128 * 116 * count * 1e-9, summary(ways[1].times).median * 1e3, s.median,
                s.low, s.high);
  }

  Settings settings_;
  Mesh mesh_{MPI_COMM_WORLD, "tp=auto"};
  int rank_ = 0, size_ = 1;
  std::int64_t read_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--list") settings.has_list = true;
    if (i + 1 >= argc) break;
    if (flag == "--cases") settings.cases = argv[i + 1];
    if (flag == "--rounds") settings.rounds = std::atoi(argv[i + 1]);
    if (flag != "--sizes") continue;
    settings.sizes.clear();
    std::istringstream list{argv[i + 1]};
    for (std::string size; std::getline(list, size, ',');)
      settings.sizes.push_back(std::atoi(size.c_str()));
  }
  Benchmark{settings}.run();
  return 0;
}
