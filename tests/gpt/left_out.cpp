// SPDX-License-Identifier: BSD-3-Clause
// left_out [LAYOUT] [--NAME VALUE]... (the options of examples/gpt): leaves out one call of
// rankmesh after the other from examples/gpt, on all ranks, and expects each time that the losses
// differ from those of one process. An error notices it, too.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../../examples/gpt/options.hpp"
#include "training.hpp"

namespace {

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

int run(const Options& options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto alone = train_alone(options.config, options.text);
  const double whole = difference(
      train(MPI_COMM_WORLD, options.layout, options.config, options.text), alone, MPI_COMM_WORLD);
  int failures = whole < 1e-4 ? 0 : 1;
  if (rank == 0) std::printf("%-40s %8.1e\n", "all calls", whole);
  for (const std::string& call : calls_of_all_ranks()) {
    left_out::call = call;
    const double without = difference(
        train(MPI_COMM_WORLD, options.layout, options.config, options.text), alone, MPI_COMM_WORLD);
    const bool is_noticed = without > 1e-4;
    if (rank == 0)
      std::printf("%-40s %8.1e%s\n", ("without " + call).c_str(), without,
                  is_noticed ? "" : "  FAILED: nobody notices it");
    failures += is_noticed ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(Options{argc, argv}); });
}
