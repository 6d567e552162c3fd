// SPDX-License-Identifier: BSD-3-Clause
// Lost ranks: after each step, the ranks keep the model for each other, and the survivors go on
// from there.
#pragma once

#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rankmesh/exchange/kept_tensors.hpp>

#include "checkpoint.hpp"
#include "options.hpp"
#include "trainer.hpp"

/// What the ranks have kept of a model: one list of tensors for each group of replicas.
class Kept {
 public:
  void keep(Trainer& trainer) {
    for_each(trainer, [&](rankmesh::exchange::KeptTensors& kept, Replicas& replicas) {
      std::vector<rankmesh::exchange::SavedTensor> saved;
      for (const auto& part : replicas.parts()) {
        saved.push_back({part.name, part.place});
        saved.back().source.memory = part.target.memory.as_input();
      }
      kept.keep(replicas.group(), trainer.steps(), saved);
    });
  }
  /// Sets the model to a step that was kept. Returns false if parts of it are lost with all ranks
  /// that had them: this may be so in some groups, and not in others.
  bool restore(Trainer& trainer, Groups& groups, std::int64_t step) {
    int is_whole = 1;
    for_each(trainer, [&](rankmesh::exchange::KeptTensors& kept, Replicas& replicas) {
      try {
        kept.restore(replicas.group(), step, replicas.parts());
        replicas.changed();
      } catch (const rankmesh::LostElements& lost) {
        std::printf("%s\n", lost.message().c_str());
        is_whole = 0;
      }
    });
    groups.world.all_reduce(is_whole, ReduceOp::min);
    trainer.set_steps(step);
    return is_whole == 1;
  }

 private:
  template <class Use>
  void for_each(Trainer& trainer, Use&& use) {
    std::size_t next = 0;
    trainer.model().for_each_store([&](Store& store) {
      store.for_each_replicas([&](int kind, Replicas& replicas) {
        use(kept_[{next, kind}], replicas);
      });
      ++next;
    });
  }
  std::map<std::pair<std::size_t, int>, rankmesh::exchange::KeptTensors> kept_;
};

/// Returns the layout of the mesh, which has fewer replicas than the one that the program has asked
/// for.
inline std::string layout_now(const Options& options, const Mesh& mesh) {
  std::string sizes;
  for (const auto& dimension : mesh.plan().views().front().dimensions())
    sizes += (sizes.empty() ? "" : ",") + dimension.name + "=" + std::to_string(dimension.size);
  const std::string whole = complete(options.layout);
  return sizes + whole.substr(whole.find(';'));
}

/// Brings a new trainer to where all ranks go on: to the last step that they have committed, or to
/// the last checkpoint.
inline void go_on(const Options& options, Trainer& trainer, Groups& groups, Kept& kept) {
  const auto step = groups.mesh.step();
  if (step && kept.restore(trainer, groups, *step)) return;
  bool is_there = !options.checkpoint.empty() && is_saved(options.checkpoint);
  groups.world.broadcast(is_there, 0);  // rank 0 decides
  if (is_there)
    load(options.checkpoint, trainer, groups, layout_now(options, groups.mesh));
  else if (step)
    throw rankmesh::Error{"parts of the model are lost, and there is no checkpoint",
                          "choose a folder with --checkpoint"};
  if (step) groups.mesh.commit(trainer.steps());
}

/// Trains on a mesh, and after a loss on that of the survivors. Ranks that the layout does not take
/// are spare, with --spares 1. Calls after(trainer, groups, loss) after each step.
template <class After>
void train_surviving(const Options& options, After&& after) {
  using rankmesh::ShrinkPolicy;
  const auto policy = options.spares != 0 ? ShrinkPolicy::spare : ShrinkPolicy::drop_replica;
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, complete(options.layout),
                           rankmesh::MeshOptions{.survive = rankmesh::Survival{.policy = policy}}};
  Kept kept;
  for (bool is_lost = false, is_done = false; !is_done;) {
    try {
      if (is_lost || mesh->is_spare()) mesh = mesh->next();
      if (!mesh) return;  // this rank has no place in it, or is not needed
      is_lost = false;
      {
        Groups groups{*mesh};
        Trainer trainer{options.config, groups, options.text};
        go_on(options, trainer, groups, kept);
        while (trainer.steps() < options.config.steps) {
          const double loss = trainer.step();
          kept.keep(trainer);
          mesh->commit(trainer.steps());
          after(trainer, groups, loss);
        }
      }
      mesh->close();
      is_done = true;
    } catch (const rankmesh::LostRanks& lost) {
      // The first survivor prints it: the first rank of the next mesh may have been spare.
      std::size_t first = 0;
      while (first < lost.ranks().size() && lost.ranks()[first].to_size() == first) ++first;
      if (mesh->rank().to_size() == first) std::printf("%s\n", lost.message().c_str());
      is_lost = true;
    }
  }
}
