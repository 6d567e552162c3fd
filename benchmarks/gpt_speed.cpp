// SPDX-License-Identifier: BSD-3-Clause
// gpt_speed [LAYOUT] [--NAME VALUE]... (the options of examples/gpt): trains for --steps steps, and
// prints the tokens per second without the first step, and the last loss. The build also makes
// gpt_speed_raw from this file, with MPI in the place of rankmesh. scripts/gpt-speed compares them.
#include <cstdio>

#include "../examples/gpt/options.hpp"
#include "../examples/gpt/trainer.hpp"

namespace {

void run(const Options& options) {
  Mesh mesh{MPI_COMM_WORLD, complete(options.layout)};
  {
    Groups groups{mesh};
    Trainer trainer{options.config, groups, options.text};
    trainer.step();
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    double loss = 0;
    while (trainer.steps() < options.config.steps) loss = trainer.step();
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - begin;
    if (mesh.rank() == rankmesh::Rank{0})
      std::printf("%.1f tokens/s, loss %.6f\n",
                  static_cast<double>((options.config.steps - 1) * options.config.batch *
                                      options.config.context) /
                      seconds,
                  loss);
  }
  mesh.close();
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { run(Options{argc, argv}); });
}
