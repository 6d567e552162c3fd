// SPDX-License-Identifier: BSD-3-Clause
// Trains a small GPT on the text of licences, or on any file, in every parallel form.
//
//   mpirun -n 8 gpt pp=2,dp=2,tp=2
//
// README.md describes how it works; begin with trainer.hpp.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

#include "checkpoint.hpp"
#include "curve.hpp"
#include "generate.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "survive.hpp"
#include "trainer.hpp"

namespace {

bool is_first_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0;
}

// The losses of the steps from `first` on.
struct Losses {
  std::int64_t first = 0;
  std::vector<double> of_steps{};
};

// Trains on one process.
Losses train_alone(const Options& options) {
  Config config = options.config;
  config.chunks = 1;
  config.zero = 0;
  Mesh mesh{MPI_COMM_SELF, complete("dp=1")};
  Losses losses;
  std::printf("one process trains first, to compare with it\n");
  std::fflush(stdout);
  {
    Groups groups{mesh};
    Trainer trainer{config, groups, options.text};
    while (trainer.steps() < config.steps) losses.of_steps.push_back(trainer.step());
  }
  mesh.close();
  return losses;
}

// Trains on a mesh of all ranks, and then passes the weights to the ranks that write, if there is
// no checkpoint from which they read them. Rank 0 prints how it goes.
Losses train(const Options& options, const Losses& alone, Writer* writer) {
  const Config& config = options.config;
  Mesh mesh{MPI_COMM_WORLD, complete(options.layout)};
  const std::string layout = with_sizes(complete(options.layout), mesh);
  Losses losses;
  {
    Groups groups{mesh};
    Trainer trainer{config, groups, options.text};
    Progress progress{config.batch * config.context};
    const bool prints = mesh.rank() == rankmesh::Rank{0};
    bool continues = !options.checkpoint.empty() && is_saved(options.checkpoint);
    groups.world.broadcast(continues, 0);  // rank 0 decides
    if (continues) load(options.checkpoint, trainer, groups, layout);
    progress.begin(losses.first = trainer.steps());
    if (prints)
      std::printf("%ld parameters on %s, from step %ld on\n",
                  static_cast<long>(trainer.model().size()), options.layout.c_str(),
                  static_cast<long>(losses.first + 1));
    while (trainer.steps() < config.steps) {
      losses.of_steps.push_back(trainer.step());
      const std::int64_t step = trainer.steps();
      const bool is_shown = step == losses.first + 1 || step % options.every == 0;
      if (prints && is_shown)
        progress.print(step, losses.of_steps.back(),
                       alone.of_steps.empty() ? 0 : alone.of_steps[step - 1], trainer.norm());
      if (!options.checkpoint.empty() && (step % options.every == 0 || step == config.steps))
        save(options.checkpoint, trainer, groups, layout);
    }
    if (writer != nullptr && options.checkpoint.empty())
      writer->receive(trainer.model(), layout, groups.world);
  }
  mesh.close();
  return losses;
}

// Trains on a mesh of all ranks, and after a loss on that of the survivors.
int train_surviving(const Options& options) {
  Progress progress{options.config.batch * options.config.context};
  train_surviving(options, [&](Trainer& trainer, Groups& groups, double loss) {
    const std::int64_t step = trainer.steps();
    if (groups.world.is_first() && (step == 1 || step % options.every == 0))
      progress.print(step, loss, 0, trainer.norm());
    if (!options.checkpoint.empty() && step % options.every == 0)
      save(options.checkpoint, trainer, groups, layout_now(options, groups.mesh));
  });
  return 0;
}

// Compares with one process. NaN counts as a large difference.
bool agree(const Losses& losses, const Losses& alone) {
  double most = 0;
  for (std::size_t i = 0; i < losses.of_steps.size(); ++i) {
    const double relative = std::abs(losses.of_steps[i] / alone.of_steps[losses.first + i] - 1);
    most = std::isfinite(relative) ? std::max(most, relative) : HUGE_VAL;
  }
  std::printf(
      "the losses of %zu steps %s those of one process: largest relative difference %.1e "
      "(limit 1e-04)\n",
      losses.of_steps.size(), most <= 1e-4 ? "agree with" : "DIFFER from", most);
  return most <= 1e-4;
}

// The loss of a step depends on its sequences, so several steps are averaged.
bool falls(const Losses& losses) {
  const auto& all = losses.of_steps;
  const std::int64_t last = std::min<std::int64_t>(5, std::ssize(all));
  double mean = 0;
  for (std::int64_t i = 0; i < last; ++i)
    mean += all[all.size() - 1 - i] / static_cast<double>(last);
  std::printf("the loss has fallen from %.3f to %.3f\n", all.front(), mean);
  return mean < all.front() * 2 / 3;
}

// Lets the model write. Rank 0 prints it.
void write(Writer& writer, const Options& options) {
  if (!options.checkpoint.empty()) writer.read(options.checkpoint);
  const std::string text = writer.write(options.prompt, options.generate);
  if (!text.empty() && is_first_rank()) std::printf("the model writes: %s\n", text.c_str());
}

int run(const Options& options) {
  if (options.survive != 0) return train_surviving(options);
  Losses alone;
  if (options.compare && is_first_rank()) alone = train_alone(options);
  // The opening of a mesh has a time limit, and training alone may take longer.
  if (options.compare) MPI_Barrier(MPI_COMM_WORLD);
  std::optional<Writer> writer;
  if (options.generate > 0) writer.emplace(options.config, options.writers, options.text);
  const Losses losses = train(options, alone, writer ? &*writer : nullptr);

  bool is_right = true;
  if (is_first_rank() && !losses.of_steps.empty()) {
    if (options.compare) is_right = agree(losses, alone);
    if (losses.first == 0 && options.config.steps >= 50) is_right = falls(losses) && is_right;
    if (!options.curve.empty())
      draw_losses(options.curve, losses.of_steps, alone.of_steps, "loss on " + options.layout);
  }
  if (writer) {
    write(*writer, options);
    writer->close();
  }
  return is_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // A mesh that survives needs several threads.
  return rankmesh::run(argc, argv,
                       [&] {
                         return run(Options{argc, argv});
                       },
                       {.threads = rankmesh::mpi::ThreadLevel::multiple});
}
