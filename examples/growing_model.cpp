// SPDX-License-Identifier: BSD-3-Clause
// Two models share one world, one on even ranks, one on odd ranks. The even model grows from 2 to 4
// ranks and shrinks again while the odd model keeps running.
//
//   mpirun -n 8 growing_model [host|device|shared]
//
// In each step, the even model adds the average of its ranks' contributions to a state. Ranks that
// join receive the state from the first rank; ranks that leave are done. Only the members of the
// old and the new group take part in a change; the odd ranks are not involved.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "host_or_device.hpp"

namespace {

using rankmesh::Rank;

constexpr int steps = 12;

// The number of ranks of the even model in a step: 2, then 4, then 2 again.
std::int64_t ranks_in(int step) { return step >= 4 && step < 8 ? 4 : 2; }

float contribution(std::int64_t member, int step) {
  return static_cast<float>(1 + member * 3 + step % 5);
}

// The final state of the even model, computed in one process.
float expected_state() {
  float state = 0;
  for (int step = 0; step < steps; ++step) {
    float sum = 0;
    for (std::int64_t member = 0; member < ranks_in(step); ++member)
      sum += contribution(member, step);
    state = 0.5F * state + sum / static_cast<float>(ranks_in(step));
  }
  return state;
}

// Runs the even model: a group of its first 2 or 4 ranks, which is replaced when the
// number changes.
float run_even(rankmesh::Mesh& world, const HostOrDevice& memory) {
  const std::int64_t member = world.rank().value() / 2;
  std::shared_ptr<rankmesh::GroupCoordinator> group;
  std::vector<float> state{0};
  for (int step = 0; step < steps; ++step) {
    const std::int64_t now = ranks_in(step);
    const std::int64_t before = step == 0 ? 0 : ranks_in(step - 1);
    if (now != before) {
      if (group) world.close(*group);  // collective over its members, also those that leave
      group.reset();
      if (member < now) {
        std::vector<Rank> ranks;
        for (std::int64_t m = 0; m < now; ++m) ranks.emplace_back(2 * m);
        group = world.new_group(ranks, "even model of " + std::to_string(now));
        memory.broadcast(*group, state, 0);  // gives the state to ranks that join
        if (world.rank() == Rank{0})
          std::printf("step %2d: the even model has %lld ranks\n", step,
                      static_cast<long long>(now));
      }
    }
    if (!group) continue;
    std::vector<float> value{contribution(member, step)};
    memory.all_reduce(*group, value, rankmesh::ReduceOp::avg);
    state[0] = 0.5F * state[0] + value[0];
  }
  if (group) world.close(*group);
  return state[0];
}

// Runs the odd model: one group for all steps.
float run_odd(rankmesh::Mesh& world, const HostOrDevice& memory) {
  std::vector<Rank> ranks;
  for (std::int64_t r = 1; r < world.size(); r += 2) ranks.emplace_back(r);
  const auto group = world.new_group(ranks, "odd model");
  std::vector<float> state{0};
  for (int step = 0; step < 10 * steps; ++step) {
    std::vector<float> value{1};
    memory.all_reduce(*group, value);
    state[0] += value[0];
  }
  world.close(*group);
  return state[0];
}

int run(const char* where) {
  const rankmesh::MeshOptions options = options_for(where);
  rankmesh::Mesh world{MPI_COMM_WORLD, "rank=auto", options};
  if (world.size() < 8)
    throw rankmesh::UsageError{"the even model needs 4 even ranks", "start at least 8 ranks"};
  const HostOrDevice memory{options.devices == rankmesh::DeviceUse::required};
  const std::int64_t rank = world.rank().value();
  const bool is_even = rank % 2 == 0;
  const float state = is_even ? run_even(world, memory) : run_odd(world, memory);

  const float expected =
      is_even ? expected_state() : static_cast<float>(10 * steps * (world.size() / 2));
  std::vector<float> wrong{is_even && rank >= 4 ? 0 : std::abs(state - expected) / expected};
  world["rank"].all_reduce(wrong, rankmesh::ReduceOp::max);
  if (rank == 0)
    std::printf(
        "even model %.6f, in one process %.6f; largest relative difference of both %.1e\nverdict: "
        "%s\n",
        static_cast<double>(state), static_cast<double>(expected), static_cast<double>(wrong[0]),
        wrong[0] <= 1e-5F ? "agrees" : "DIFFERS");
  world.close();
  return wrong[0] <= 1e-5F ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(argc > 1 ? argv[1] : "host"); });
}
