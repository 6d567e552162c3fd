// SPDX-License-Identifier: BSD-3-Clause
// gpt_test survive RANKS STEP LAYOUT [--NAME VALUE]... (the options of examples/gpt): trains, kills
// ranks after a step, in which it writes the checkpoint of the options, and compares the losses of
// the survivors with those of a run that begins on their mesh with a checkpoint of this step: all
// bits must be equal.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "../../examples/gpt/survive.hpp"
#include "modes.hpp"

namespace {

// Kills ranks at the same moment: the last one kills the others, and then itself.
void end(const rankmesh::RankSet& victims, Groups& groups) {
  const int own = ::getpid();
  std::vector<int> all(groups.world.size());
  groups.world.all_gather(std::span{&own, 1}, all);
  if (groups.mesh.rank() == victims.back())
    for (const rankmesh::Rank victim : victims.to_vector()) ::kill(all[victim.to_size()], SIGKILL);
}

int train_and_kill(const rankmesh::RankSet& victims, std::int64_t step_of_death,
                   const Options& options) {
  std::vector<double> losses;  // of the survivors
  int failures = 1;
  train_surviving(options, [&](Trainer& trainer, Groups& groups, double loss) {
    const std::int64_t step = trainer.steps();
    const std::string layout = layout_now(options, groups.mesh);
    if (step <= step_of_death) {
      if (step < step_of_death) return;
      save(options.checkpoint, trainer, groups, layout);
      end(victims, groups);
      return;
    }
    losses.push_back(loss);
    if (step < options.config.steps) return;
    Trainer other{options.config, groups, options.text};
    load(options.checkpoint, other, groups, layout);
    failures = static_cast<int>(options.config.steps - step_of_death - std::ssize(losses));
    for (const double of_survivors : losses) failures += other.step() == of_survivors ? 0 : 1;
    if (groups.world.is_first())
      std::printf("%s: %zu losses after step %ld, of which %d differ\n", layout.c_str(),
                  losses.size(), static_cast<long>(step_of_death), failures);
  });
  return failures;
}

}  // namespace

int survive(int argc, char** argv) {
  if (argc < 4) return 2;
  return rankmesh::run(argc, argv,
                       [&] {
                         return train_and_kill(rankmesh::RankSet::parse(argv[1]),
                                               std::atoi(argv[2]), Options{argc - 2, argv + 2});
                       },
                       {.threads = rankmesh::mpi::ThreadLevel::multiple});
}
