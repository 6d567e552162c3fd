// SPDX-License-Identifier: BSD-3-Clause
// Measures queries for one rank of a mesh of six dimensions: its coordinates, its group along one
// dimension, and its rank in this group. The four variants run alternately, batch by batch, so
// that a disturbance affects all of them: rankmesh Layout::coordinates and GroupFamily::find by
// hand arithmetic for this mesh, with its sizes in variables constants the same arithmetic, with
// sizes that the compiler knows lists every group as a vector of ranks, and a table from rank to
// place for each dimension
#include <malloc.h>

#include <array>
#include <chrono>
#include <memory>
#include <random>

#include <benchmark/benchmark.h>

#include "rankmesh/spec/mesh_spec.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Sizes = std::array<std::int64_t, 6>;

constexpr std::size_t asked = 2;  // dp, in the middle of the mesh

struct Answer {
  Sizes coordinates;
  std::int64_t group, rank_in_group;
};

constexpr Sizes sizes_of(std::int64_t world) { return {2, 4, world / 512, 2, 4, 8}; }
std::string mesh_of(std::int64_t world) {
  return "pod=2,pp=4,dp=" + std::to_string(world / 512) + ",cp=2,ep=4,tp=8";
}

std::size_t bytes_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

[[gnu::always_inline]] inline Answer divide(std::int64_t rank, const Sizes& sizes) {
  Answer answer{};
  for (std::size_t d = 6; d-- > 0;) {
    answer.coordinates[d] = rank % sizes[d];
    rank /= sizes[d];
  }
  for (std::size_t d = 0; d < 6; ++d)
    if (d != asked) answer.group = answer.group * sizes[d] + answer.coordinates[d];
  answer.rank_in_group = answer.coordinates[asked];
  return answer;
}

// The sizes are volatile, so that the compiler does not know them.
[[gnu::noinline]] Answer by_hand(std::int64_t rank, const Sizes& sizes) {
  return divide(rank, sizes);
}

template <std::int64_t world>
[[gnu::noinline]] Answer by_constants(std::int64_t rank) {
  constexpr Sizes sizes = sizes_of(world);
  return divide(rank, sizes);
}

// The lists of all groups, and the place of each rank in them.
struct Lists {
  struct Place {
    std::int32_t group, rank_in_group;
  };
  std::array<std::vector<std::vector<std::int32_t>>, 6> groups;
  std::array<std::vector<Place>, 6> places;

  explicit Lists(std::int64_t world) {
    const Sizes sizes = sizes_of(world);
    std::int64_t stride = 1;
    for (std::size_t d = 6; d-- > 0; stride *= sizes[d]) {
      groups[d].resize(static_cast<std::size_t>(world / sizes[d]));
      places[d].resize(static_cast<std::size_t>(world));
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const std::int64_t group = rank / (stride * sizes[d]) * stride + rank % stride;
        auto& list = groups[d][static_cast<std::size_t>(group)];
        places[d][static_cast<std::size_t>(rank)] = {static_cast<std::int32_t>(group),
                                                     static_cast<std::int32_t>(list.size())};
        list.push_back(static_cast<std::int32_t>(rank));
      }
    }
  }

  [[nodiscard]] Answer ask(std::int64_t rank) const {
    Answer answer{};
    for (std::size_t d = 0; d < 6; ++d)
      answer.coordinates[d] = places[d][static_cast<std::size_t>(rank)].rank_in_group;
    const Place place = places[asked][static_cast<std::size_t>(rank)];
    answer.group = place.group;
    answer.rank_in_group = place.rank_in_group;
    return answer;
  }
};

Answer ask(const rankmesh::Layout& layout, const rankmesh::GroupFamily& family, std::int64_t rank) {
  std::array<rankmesh::Coordinate, 6> coordinates;
  layout.coordinates(rank, coordinates);
  const auto place = family.find(rank);
  Answer answer{{}, place->group, place->rank_in_group.value()};
  for (std::size_t d = 0; d < 6; ++d) answer.coordinates[d] = coordinates[d].value();
  return answer;
}

std::int64_t digest(const Answer& answer) {
  std::int64_t sum = answer.group * 7 + answer.rank_in_group;
  for (const std::int64_t coordinate : answer.coordinates) sum = sum * 31 + coordinate;
  return sum;
}

template <std::int64_t world>
void query(benchmark::State& state) {
  const std::size_t before = bytes_in_use();
  const auto plan =
      std::make_unique<rankmesh::MeshPlan>(rankmesh::MeshSpec::parse(mesh_of(world)).plan());
  const std::size_t with_plan = bytes_in_use();
  const auto start = Clock::now();
  const auto lists = std::make_unique<Lists>(world);
  const std::chrono::duration<double> list_time = Clock::now() - start;
  const std::size_t with_lists = bytes_in_use();

  Sizes sizes = sizes_of(world);
  benchmark::DoNotOptimize(sizes);
  std::mt19937_64 random;
  std::vector<std::int64_t> ranks(8192);
  for (auto& rank : ranks) rank = static_cast<std::int64_t>(random() % world);
  const rankmesh::Layout& layout = plan->views().front();
  const rankmesh::GroupFamily& family = plan->families()[asked];

  std::array<double, 4> seconds{};
  std::array<std::int64_t, 4> sums{};
  const auto time = [&](std::size_t way, auto&& answer_to) {
    const auto begin = Clock::now();
    std::int64_t sum = 0;
    for (const std::int64_t rank : ranks) sum += digest(answer_to(rank));
    benchmark::DoNotOptimize(sum);
    sums[way] += sum;
    seconds[way] += std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (auto _ : state) {
    const double own = seconds[0];
    time(0, [&](std::int64_t rank) { return ask(layout, family, rank); });
    time(1, [&](std::int64_t rank) { return by_hand(rank, sizes); });
    time(2, [&](std::int64_t rank) { return by_constants<world>(rank); });
    time(3, [&](std::int64_t rank) { return lists->ask(rank); });
    state.SetIterationTime(seconds[0] - own);
  }
  for (const std::int64_t sum : sums)
    if (sum != sums[0]) state.SkipWithError("the four ways do not agree");

  const double queries =
      static_cast<double>(state.iterations()) * static_cast<double>(ranks.size());
  state.counters["ns_rankmesh"] = seconds[0] / queries * 1e9;
  state.counters["ns_by_hand"] = seconds[1] / queries * 1e9;
  state.counters["ns_constants"] = seconds[2] / queries * 1e9;
  state.counters["ns_lists"] = seconds[3] / queries * 1e9;
  state.counters["to_by_hand"] = seconds[0] / seconds[1];
  state.counters["to_constants"] = seconds[0] / seconds[2];
  state.counters["to_lists"] = seconds[0] / seconds[3];
  state.counters["bytes_plan"] = static_cast<double>(with_plan - before);
  state.counters["bytes_lists"] = static_cast<double>(with_lists - with_plan);
  state.counters["ms_make_lists"] = list_time.count() * 1e3;
}
// The number of iterations takes 0.2 s in the smallest mesh. Lists are created once per repetition.
#define QUERY(world) \
  BENCHMARK(query<world>)->UseManualTime()->Iterations(400)->Repetitions(5)->ReportAggregatesOnly()
QUERY(1024);
QUERY(16384);
QUERY(131072);
QUERY(1048576);
QUERY(16777216);

}  // namespace

BENCHMARK_MAIN();
