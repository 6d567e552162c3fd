// SPDX-License-Identifier: BSD-3-Clause
// Measures planning and queries at growing world sizes, and compares them with
// lists of ranks in vectors.
#include <benchmark/benchmark.h>

#include "rankmesh/spec/mesh_spec.hpp"

namespace {

std::string mesh_of(std::int64_t ranks) {
  return "pp=4,dp=" + std::to_string(ranks / 64) + ",cp=2,tp=8";
}

void plan(benchmark::State& state) {
  const std::string text = mesh_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(rankmesh::MeshSpec::parse(text).plan());
}
BENCHMARK(plan)->RangeMultiplier(1024)->Range(1024, 1 << 30);

void groups_of_one_rank(benchmark::State& state) {
  const auto plan = rankmesh::MeshSpec::parse(mesh_of(state.range(0))).plan();
  std::int64_t rank = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan.memberships(rank));
    rank = (rank + 7919) % plan.world_size();
  }
}
BENCHMARK(groups_of_one_rank)->RangeMultiplier(1024)->Range(1024, 1 << 30);

// The way of a program that enumerates: every group of every dimension is a vector, and the program
// searches the groups for the rank.
void groups_of_one_rank_by_lists(benchmark::State& state) {
  const std::int64_t sizes[] = {4, state.range(0) / 64, 2, 8};
  for (auto _ : state) {
    std::vector<std::vector<std::int64_t>> mine;
    std::int64_t stride = state.range(0);
    for (const std::int64_t size : sizes) {
      stride /= size;
      for (std::int64_t start = 0; start < state.range(0); ++start) {
        if (start / stride % size != 0) continue;
        std::vector<std::int64_t> group;
        for (std::int64_t k = 0; k < size; ++k) group.push_back(start + k * stride);
        if (std::find(group.begin(), group.end(), 42) != group.end()) mine.push_back(group);
      }
    }
    benchmark::DoNotOptimize(mine);
  }
}
BENCHMARK(groups_of_one_rank_by_lists)->RangeMultiplier(1024)->Range(1024, 1 << 20);

}  // namespace

BENCHMARK_MAIN();
