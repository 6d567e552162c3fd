// SPDX-License-Identifier: BSD-3-Clause
// Trains a small GPT on the text of licences, or on any file, in every parallel form.
//
//   mpirun -n 8 gpt pp=2,dp=2,tp=2
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "options.hpp"
#include "trainer.hpp"

namespace {

// Trains on a mesh. Returns the losses of all steps.
std::vector<double> train(MPI_Comm ranks, const std::string& layout, const Options& options,
                          const std::vector<double>& expected) {
  Mesh mesh{ranks, complete(layout)};
  std::vector<double> losses;
  {
    Groups groups{mesh};
    Trainer trainer{options.config, groups, options.text};
    while (trainer.steps() < options.config.steps) {
      losses.push_back(trainer.step());
      if (mesh.rank() == 0 && !expected.empty())
        std::printf("%6ld %10.6f %10.6f\n", static_cast<long>(trainer.steps()), losses.back(),
                    expected[losses.size() - 1]);
    }
  }
  mesh.close();
  return losses;
}

// Returns the largest difference of two losses, relative to the second one. NaN counts as infinite.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] / b[i] - 1);
    most = std::isfinite(difference) ? std::max(most, difference) : HUGE_VAL;
  }
  return most;
}

int run(const Options& options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<double> one(options.config.steps);
  if (rank == 0) {
    Options single = options;
    single.config.chunks = 1;
    single.config.zero = 0;
    one = train(MPI_COMM_SELF, "dp=1", single, {});
  }
  const auto losses = train(MPI_COMM_WORLD, options.layout, options, one);
  if (rank != 0) return 0;
  const double worst = largest_difference(losses, one);
  std::printf("%s zero=%ld chunks=%ld: first %.4f last %.4f difference %.1e %s\n", options.layout.c_str(), (long)options.config.zero,
              (long)options.config.chunks, losses.front(), losses.back(), worst,
              worst < 1e-4 ? "ok" : "FAIL");
  return worst < 1e-4 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(Options{argc, argv}); });
}
