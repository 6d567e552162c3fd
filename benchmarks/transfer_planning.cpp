// SPDX-License-Identifier: BSD-3-Clause
// The time in which one rank of 4,096 plans its part of a transfer of 100,000 tensors with 200
// different places:
//
//     ninja -C build benchmarks/transfer_planning && build/benchmarks/transfer_planning
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "machine/read_machine.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace {

using rankmesh::Machine;
using rankmesh::TensorPlacement;
using rankmesh::TensorTransfer;

struct Shape {
  const char* sizes;
  const char* axes;
};

constexpr Shape shapes[] = {{"[128256,16384]", "(tp, _)"},
                            {"[16384,16384]", "(tp, _)"},
                            {"[16384,16384]", "(_, tp)"},
                            {"[1024,16384]", "(tp, _)"},
                            {"[53248,16384]", "(tp, _)"},
                            {"[106496,16384]", "(53248:tp + 53248:tp, _)"},
                            {"[16384,53248]", "(_, tp)"},
                            {"[16384]", "(_)"},
                            {"[18432,16384]", "(16384:tp + 1024:tp + 1024:tp, _)"},
                            {"[8192,16384]", "(tp:ceil, _)"}};

// 16 stages and 10 shapes make 160 places; 10 shapes on 4 serving meshes make 40.
std::vector<TensorTransfer> tensors_of(std::size_t count) {
  std::vector<TensorPlacement> sources;
  std::vector<TensorPlacement> targets;
  for (const Shape& shape : shapes)
    for (int stage = 0; stage < 16; ++stage)
      sources.push_back(TensorPlacement::parse(
          std::string{shape.sizes} + " bf16 @ pp=16,dp=32,tp=8 at pp=" + std::to_string(stage) +
          " : " + shape.axes));
  for (const Shape& shape : shapes)
    for (const char* mesh : {"dp=512,tp=8", "dp=256,tp=16", "dp=128,tp=32", "dp=1024,tp=4"})
      targets.push_back(TensorPlacement::parse(std::string{shape.sizes} + " bf16 @ " + mesh +
                                               " : " + shape.axes));
  std::vector<TensorTransfer> tensors;
  for (std::size_t t = 0; t < count; ++t) {
    const std::size_t source = t % sources.size();
    tensors.push_back({sources[source], targets[source / 16 * 4 + source % 4],
                       "model.layers." + std::to_string(t) + ".weight"});
  }
  return tensors;
}

double milliseconds(const std::vector<TensorTransfer>& tensors, const Machine* machine) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    auto copy = tensors;
    const auto begin = std::chrono::steady_clock::now();
    const auto plan = plan_transfer(std::move(copy), machine);
    const auto part = plan.of(1234);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    if (part.size() != tensors.size()) return -1;
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

int main() {
  const Machine machine =
      rankmesh::MachineReader{}.machine({.ranks_per_node = 8, .world_size = 4096});
  const auto tensors = tensors_of(100'000);
  std::printf("100,000 tensors, 200 places, 4,096 ranks, median of 9:\n");
  std::printf("  without a machine  %6.1f ms\n", milliseconds(tensors, nullptr));
  std::printf("  with nodes of 8    %6.1f ms\n", milliseconds(tensors, &machine));
}
