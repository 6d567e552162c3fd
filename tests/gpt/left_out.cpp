// SPDX-License-Identifier: BSD-3-Clause
// left_out [LAYOUT] [--NAME VALUE]... (the options of examples/gpt): leaves out one call of
// rankmesh after the other from examples/gpt, on all ranks, and expects each time that the losses
// differ from those of one process. An error notices it, too.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../../examples/gpt/options.hpp"
#include "training.hpp"

namespace {

constexpr double limit = 1e-4;  // of the relative difference of two losses

// The calls of all ranks, in the same order on each of them.
std::vector<std::string> calls_of_all_ranks() {
  std::string mine;
  for (const std::string& call : left_out::calls) mine += call + '\n';
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "all=auto"};
  const auto all = mesh["all"].all_gather_v(std::vector<char>{mine.begin(), mine.end()}).values;
  mesh.close();
  std::set<std::string> calls;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find(begin, all.end(), '\n');
    calls.emplace(begin, end);
    begin = end + 1;
  }
  return {calls.begin(), calls.end()};
}

// Trains until the losses differ from those of one process on any rank, or until the last step.
// Returns the largest difference. An error that all ranks find in the calls of the program counts
// as an infinite one.
double train_until_noticed(Groups& groups, const Options& options,
                           const std::vector<double>& alone) {
  double most = 0;
  try {
    Trainer trainer{options.config, groups, options.text};
    for (std::int64_t step = 0; step < options.config.steps && most <= limit; ++step)
      most = std::max(most, largest(difference(trainer.step(), alone[step]), MPI_COMM_WORLD));
  } catch (const rankmesh::UsageError& error) {
    if (groups.mesh.rank() == rankmesh::Rank{0}) std::printf("%s\n", error.what());
    return HUGE_VAL;
  }
  return most;
}

int run(const Options& options) {
  const auto alone = train_alone(options.config, options.text);
  Mesh mesh{MPI_COMM_WORLD, complete(options.layout)};
  int failures = 0;
  {
    Groups groups{mesh};
    const bool prints = mesh.rank() == rankmesh::Rank{0};
    const double whole = train_until_noticed(groups, options, alone);
    failures = whole <= limit ? 0 : 1;
    if (prints) std::printf("%-40s %8.1e\n", "all calls", whole);
    for (const std::string& call : calls_of_all_ranks()) {
      left_out::call = call;
      const double without = train_until_noticed(groups, options, alone);
      const bool is_noticed = without > limit;
      if (prints)
        std::printf("%-40s %8.1e%s\n", ("without " + call).c_str(), without,
                    is_noticed ? "" : "  FAILED: nobody notices it");
      failures += is_noticed ? 0 : 1;
    }
  }
  mesh.close();
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(Options{argc, argv}); });
}
