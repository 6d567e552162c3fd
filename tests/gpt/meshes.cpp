// SPDX-License-Identifier: BSD-3-Clause
// gpt_test meshes [LAYOUT] [--NAME VALUE]... (the options of examples/gpt): trains examples/gpt on
// the named meshes, or on those with this layout, up to the first one that has more ranks than the
// job.
//
// - The losses of all steps are compared with those of one process. From 50 steps on, the loss must
//   fall by a third.
// - The bytes that the ranks send in a step, by their records, must be those that `meshinfo
//   estimate` computes from the figures of the model. They are printed for the last step. With
//   ZeRO-3, this holds for models that are so small that each weight is gathered once.
// - The memory of each rank must be within 5 % of what `meshinfo search` predicts.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "../../examples/gpt/options.hpp"
#include "estimated.hpp"
#include "memory.hpp"
#include "modes.hpp"
#include "training.hpp"

namespace {

struct Named {
  const char* name;
  int ranks;
  const char* layout;
  std::int64_t chunks = 1, zero = 0, experts = 0;
};

const std::vector<Named> all_meshes{
    {"tensor", 2, "tp=2"},
    {"three of tensor", 3, "tp=3"},
    {"data", 2, "dp=2"},
    {"three of data", 3, "dp=3"},
    {"pipeline", 2, "pp=2"},
    {"long pipeline", 4, "pp=4"},
    {"interleaved pipeline", 2, "pp=2", 2},
    {"context", 2, "cp=2"},
    {"three of context", 3, "cp=3"},
    {"experts", 2, "ep=2", 1, 0, 4},
    {"ZeRO-1", 3, "dp=3", 1, 1},
    {"ZeRO-2", 3, "dp=3", 1, 2},
    {"ZeRO-3", 3, "dp=3", 1, 3},
    {"tensor, data", 4, "dp=2,tp=2"},
    {"pipeline, tensor", 4, "pp=2,tp=2"},
    {"context, tensor", 4, "cp=2,tp=2"},
    {"experts, tensor", 4, "ep=2,tp=2", 1, 0, 4},
    {"experts, data, ZeRO-2", 4, "dp=2,ep=2", 1, 2, 2},
    {"tensor, data, ZeRO-3", 6, "dp=2,tp=3", 1, 3},
    {"context, data, ZeRO-1", 6, "cp=3,dp=2", 1, 1},
    {"pipeline, data, tensor", 8, "pp=2,dp=2,tp=2"},
    {"tensor outermost", 8, "tp=2,dp=2,pp=2"},
    {"interleaved, ZeRO-2", 8, "pp=2,dp=2,tp=2", 2, 2},
    {"pipeline, experts, ZeRO-3", 8, "pp=2,ep=4", 1, 3, 4},
    {"all but data", 16, "pp=2,cp=2,ep=2,tp=2", 2, 1, 4},
    {"all", 32, "pp=2,dp=2,cp=2,ep=2,tp=2", 2, 3, 4},
};

// Returns the bytes that all ranks send in a step, by family. Collective over the mesh.
std::string text_of(std::map<std::string, Sent>& sent, Groups& groups) {
  std::string text;
  for (const char* name : {"tp", "pp", "cp", "ep", "embd", "data", "data_tp", "expert_data"}) {
    std::int64_t bytes = sent[name].gathers + sent[name].all_messages();
    std::int64_t reductions = sent[name].reductions;
    groups.world.all_reduce(bytes);
    groups.world.all_reduce(reductions);
    if (reductions > 0) bytes += reductions / groups.mesh.plan().groups(name).group_size();
    if (bytes > 0) text += std::string{"  "} + name + " " + std::to_string(bytes);
  }
  return text;
}

// Returns whether the losses and the bytes on a mesh are right. Collective over its ranks.
bool is_right(const Named& named, MPI_Comm ranks, Config config, const std::string& text,
              const std::vector<double>& alone) {
  config.chunks = named.chunks;
  config.zero = named.zero;
  config.experts = named.experts;
  Mesh mesh{ranks, complete(named.layout)};
  double most = 0, first = 0, last = 0;
  int failures = 0;
  {
    Groups groups{mesh};
    Trainer trainer{config, groups, text};
    const OwnRecord own;
    failures += trainer.model().size() == figures(config, groups).parameters ? 0 : 1;
    const auto step = [&] {
      last = trainer.step();
      if (trainer.steps() == 1) first = last;
      most = std::max(most, difference(last, alone[trainer.steps() - 1]));
    };
    while (trainer.steps() + 1 < config.steps) step();
    auto sent = sent_in(own, step);
    const std::string bytes = text_of(sent, groups);
    // The tokens of a text do not choose the experts evenly.
    if (config.experts > 0) sent = sent_if_even(own, config, groups, text);
    if (config.zero < 3 || gathers_once(trainer.model()))
      failures += compare_with_estimate(named.layout, config, groups, trainer.model(), sent);
    most = largest(most, ranks);
    const bool falls = config.steps < 50 || last < first * 2 / 3;
    const double memory = memory_difference(config, groups, text);
    failures += (most <= 1e-4 ? 0 : 1) + (falls ? 0 : 1) + (memory <= 0.05 ? 0 : 1);
    if (mesh.rank() == rankmesh::Rank{0})
      std::printf("%-26s %3d  %-26s  %7.4f  %7.4f  %8.1e  %4.1f %%%s%s%s\n", named.name,
                  named.ranks, named.layout, first, last, most, 100 * memory, bytes.c_str(),
                  most <= 1e-4 ? "" : "  FAILED: differs",
                  falls ? "" : "  FAILED: does not fall by a third");
  }
  mesh.close();
  return failures == 0;
}

// The meshes that train at the same time, one after the other on the ranks of the job. Returns the
// number of meshes from `first` on that fit.
int that_fit(const std::vector<Named>& meshes, int first, int size) {
  int ranks = 0, count = 0;
  while (first + count < std::ssize(meshes) && ranks + meshes[first + count].ranks <= size)
    ranks += meshes[first + count++].ranks;
  return count;
}

int train_on_meshes(const Options& options) {
  int rank = 0, size = 0, failures = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Named> meshes;
  for (const Named& mesh : all_meshes)
    if (options.layout == Options{}.layout || options.layout == mesh.layout) meshes.push_back(mesh);
  std::ranges::stable_sort(meshes, {}, &Named::ranks);  // small ones train side by side
  std::map<std::int64_t, std::vector<double>> alone;    // by the number of experts
  for (const std::int64_t experts : {0, 2, 4}) {
    Config config = options.config;
    config.experts = experts;
    const int root = static_cast<int>(experts) / 2 % size;
    auto& losses = alone[experts];
    losses.resize(config.steps);
    if (rank == root) losses = train_alone(config, options.text);
  }
  for (auto& [experts, losses] : alone)
    MPI_Bcast(losses.data(), static_cast<int>(losses.size()), MPI_DOUBLE,
              static_cast<int>(experts) / 2 % size, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf(
        "%-26s ranks  %-26s  first and last loss  differences, of memory  bytes of a step\n",
        "mesh", "layout");
  for (int first = 0, count = 0; (count = that_fit(meshes, first, size)) > 0; first += count) {
    int mine = first, begin = 0;
    while (mine < first + count && rank >= begin + meshes[mine].ranks)
      begin += meshes[mine++].ranks;
    const bool trains = mine < first + count;
    MPI_Comm ranks = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, trains ? mine : MPI_UNDEFINED, rank, &ranks);
    if (!trains) continue;
    const Named& mesh = meshes[mine];
    if (!is_right(mesh, ranks, options.config, options.text, alone[mesh.experts])) ++failures;
    MPI_Comm_free(&ranks);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int meshes(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return train_on_meshes(Options{argc, argv}); });
}
