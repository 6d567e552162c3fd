// SPDX-License-Identifier: BSD-3-Clause
// survive RANK STEP FOLDER LAYOUT [--NAME VALUE]... (the options of examples/gpt): trains, kills a
// rank after a step, and compares the losses of the survivors with those of a run that begins on
// their mesh with a checkpoint of this step: all bits must be equal.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../../examples/gpt/survive.hpp"

namespace {

int run(std::int64_t victim, std::int64_t step_of_death, const std::string& folder,
        const Options& options) {
  std::vector<double> losses;  // of the survivors
  int failures = 1;
  train_surviving(options, [&](Trainer& trainer, Groups& groups, double loss) {
    const std::int64_t step = trainer.steps();
    const std::string layout = layout_now(options, groups.mesh);
    if (step <= step_of_death) {
      if (step < step_of_death) return;
      save(folder, trainer, groups, layout);
      groups.world.barrier();
      if (groups.mesh.rank() == rankmesh::Rank{victim}) ::kill(::getpid(), SIGKILL);
      return;
    }
    losses.push_back(loss);
    if (step < options.config.steps) return;
    Trainer other{options.config, groups, options.text};
    load(folder, other, groups, layout);
    failures = static_cast<int>(options.config.steps - step_of_death - std::ssize(losses));
    for (const double of_survivors : losses) failures += other.step() == of_survivors ? 0 : 1;
    if (groups.world.is_first())
      std::printf("%s: %zu losses after step %ld, of which %d differ\n", layout.c_str(),
                  losses.size(), static_cast<long>(step_of_death), failures);
  });
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  return rankmesh::run(
      argc, argv,
      [&] {
        return run(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], Options{argc - 3, argv + 3});
      },
      {.threads = rankmesh::mpi::ThreadLevel::multiple});
}
