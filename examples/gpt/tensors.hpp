// SPDX-License-Identifier: BSD-3-Clause
// The model as a list of tensors: the name of each one, the line that says which ranks of a mesh
// have which elements of it, and the elements of this rank. Checkpoints and the ranks that generate
// text need no more.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rankmesh/transfer/placement.hpp>

#include "model.hpp"

using rankmesh::TensorPlacement;

struct Tensor {
  std::string name;
  Parameter parameter;  ///< On ranks of other stages, only its kind and its sizes are right.
  TensorPlacement place;
  bool is_copy;   ///< An earlier tensor of the list has the same elements.
  Values values;  ///< Empty if this rank has no elements.
};

/// Returns the line of a parameter that the ranks of a stage have.
inline TensorPlacement place_of(const Parameter& p, std::int64_t stage, const std::string& mesh) {
  std::string shape, axes;
  const auto add = [&](std::int64_t size, const std::string& axis) {
    shape += (shape.empty() ? "" : ",") + std::to_string(size);
    axes += (axes.empty() ? "" : ",") + axis;
  };
  if (p.outer > 1) add(p.outer, "_");
  add(p.length, p.kind == Kind::divided ? "tp" : p.kind == Kind::expert ? "ep" : "_");
  if (p.inner > 1) add(p.inner, "_");
  const std::string type = sizeof(Real) == 8 ? "f64" : "f32";
  return TensorPlacement::parse("[" + shape + "] " + type + " @ " + mesh +
                                " at pp=" + std::to_string(stage) + " : (" + axes + ")");
}

/// The tensors of a model. `states` is 1 for the weights alone, and 3 for the means of AdamW, too.
class Tensors {
 public:
  /// `mesh` is the layout of the model, as complete() returns it, with a number for `auto`. Local.
  Tensors(Model& model, const std::string& mesh, int states) {
    std::map<std::string, int> seen;
    model.for_each_parameter([&](const std::string& name, const Parameter& p, std::int64_t stage,
                                 Store* store, std::int64_t part, std::size_t i) {
      for (int s = 0; s < states; ++s) {
        const std::string full = name + (s == 0 ? "" : s == 1 ? ".mean" : ".mean_of_squares");
        list.push_back({full, p, place_of(p, stage, mesh), seen[full]++ > 0, {}});
        origins_.push_back({store, part, i, s});
        if (store != nullptr) list.back().values.resize(p.size());
      }
    });
  }

  /// Copies the elements from the model. Collective over the mesh.
  void collect() {
    std::map<std::tuple<Store*, std::int64_t, int>, std::vector<Values>> parts;
    for (std::size_t t = 0; t < list.size(); ++t) {
      const auto& [store, part, i, s] = origins_[t];
      if (store == nullptr) continue;
      auto [of_part, is_new] = parts.try_emplace({store, part, s});
      if (is_new) of_part->second = store->state(part, s);
      list[t].values = std::move(of_part->second[i]);
    }
  }
  /// Copies the elements to the model. Means of AdamW that are not in the list become 0.
  void put() {
    std::map<std::pair<Store*, std::int64_t>, std::vector<Replicas::State>> states;
    for (std::size_t t = 0; t < list.size(); ++t) {
      const auto& [store, part, i, s] = origins_[t];
      if (store == nullptr) continue;
      auto& of_part = states[{store, part}];
      of_part.resize(store->parts()[part].size());
      for (Values& values : of_part[i]) values.resize(list[t].values.size());
      of_part[i][s] = list[t].values;
    }
    for (const auto& [origin, of_part] : states) origin.first->load(origin.second, of_part);
  }

  std::vector<Tensor> list;  ///< The same on all ranks, except for the elements.

 private:
  struct Origin {
    Store* store;  // null on other stages
    std::int64_t part;
    std::size_t i;
    int state;
  };
  std::vector<Origin> origins_;  // of the tensors of the list
};
