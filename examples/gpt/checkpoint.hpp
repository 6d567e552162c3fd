// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints: the tensors of the model in files, from which any mesh can continue.
#pragma once

#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <rankmesh/exchange/checkpoint.hpp>

#include "tensors.hpp"
#include "trainer.hpp"

/// The sizes of a model and the number of its steps, a small tensor of its own.
using Description = std::array<std::int64_t, 7>;

inline Description describe(const Config& c, std::int64_t steps) {
  return {c.layers, c.width, c.heads, c.context, c.experts, c.vocabulary, steps};
}
inline TensorPlacement place_of_description(const std::string& mesh) {
  return TensorPlacement::parse("[7] i64 @ " + mesh + " : (_)");
}

/// Writes a checkpoint to the folder `path`, and then removes the one before. `mesh` is the layout
/// of the trainer. Collective over its mesh. If it fails, the checkpoint before is still there.
inline void save(const std::string& path, Trainer& trainer, Groups& groups,
                 const std::string& mesh) {
  namespace fs = std::filesystem;
  Tensors tensors{trainer.model(), mesh, 3};
  tensors.collect();
  const Description description = describe(trainer.config(), trainer.steps());
  std::vector<rankmesh::exchange::SavedTensor> saved{
      {"description", place_of_description(mesh), description}};
  for (const Tensor& tensor : tensors.list)
    if (!tensor.is_copy) saved.push_back({tensor.name, tensor.place, tensor.values});

  const fs::path latest = fs::path{path} / "latest";
  fs::path before = fs::is_symlink(latest) ? fs::read_symlink(latest) : fs::path{};
  if (before != before.filename()) before.clear();  // it is not a folder of this program
  const std::string name = "step-" + std::to_string(trainer.steps());
  // Removes what an interrupted run has left.
  if (groups.world.is_first() && before != name) fs::remove_all(fs::path{path} / name);
  groups.world.barrier();
  rankmesh::exchange::save_checkpoint(groups.world, path, name, saved);
  if (groups.world.is_first() && !before.empty() && before != name)
    fs::remove_all(fs::path{path} / before);
}

/// Returns whether there is a checkpoint. Local.
inline bool is_saved(const std::string& path) {
  return std::filesystem::exists(std::filesystem::path{path} / "latest");
}

/// Continues from a checkpoint, which any mesh has written; with `states` 1, it reads the weights
/// alone. Collective over the mesh of the trainer.
inline void load(const std::string& path, Trainer& trainer, Groups& groups, const std::string& mesh,
                 int states = 3) {
  using rankmesh::exchange::LoadedTensor, rankmesh::exchange::load_checkpoint;
  Description description{};
  load_checkpoint(
      groups.world, path + "/latest",
      std::vector<LoadedTensor>{{"description", place_of_description(mesh), description}});
  const std::int64_t steps = description.back();
  if (const Description mine = describe(trainer.config(), steps); description != mine) {
    std::ostringstream text;
    text << path
         << " is no checkpoint of this model: layers, width, heads, context and experts are";
    for (std::size_t i = 0; i < 5; ++i) text << ' ' << description[i];
    text << " there, and here";
    for (std::size_t i = 0; i < 5; ++i) text << ' ' << mine[i];
    throw rankmesh::UsageError{text.str(),
                               "remove it, or choose the options with which it was written"};
  }
  Tensors tensors{trainer.model(), mesh, states};
  std::vector<LoadedTensor> loaded;
  for (Tensor& tensor : tensors.list) loaded.push_back({tensor.name, tensor.place, tensor.values});
  load_checkpoint(groups.world, path + "/latest", loaded);
  tensors.put();
  trainer.set_steps(steps);
}
