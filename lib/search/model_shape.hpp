// SPDX-License-Identifier: BSD-3-Clause
// The parts of a transformer: their parameters, their products, and the activations that a backward
// pass needs. docs/search.md has the formulas.
#pragma once

#include <vector>

#include "place/model.hpp"

namespace rankmesh::search {

/// Numbers of one layer. Bytes are those of one token.
struct LayerShape {
  std::vector<double> products{};    ///< parameters of the weights that multiply each token
  double divided = 0;                ///< parameters that tp divides
  double replicated = 0;             ///< parameters that each member of tp has
  double expert = 0;                 ///< parameters of all experts of the layer
  std::vector<double> per_expert{};  ///< products of one expert
  double kept_whole = 0;      ///< bytes of activations that only sequence parallelism divides
  double kept_divided = 0;    ///< bytes of activations that tp divides
  double cheap_whole = 0;     ///< those of `kept_whole` that are cheap to compute again
  double cheap_divided = 0;   ///< those of `kept_divided`
  double inputs_whole = 0;    ///< those of `kept_whole` that are inputs of products
  double inputs_divided = 0;  ///< those of `kept_divided`
  double cheap_inputs = 0;    ///< those of `cheap_divided` that are inputs of products
  double inside_mlp = 0;      ///< those of `kept_divided` that are inside the MLP
  double repeated = 0;        ///< parameters of products that selective recomputation repeats
};

/// What a training program keeps of a layer for the backward pass, where programs differ.
struct Keeping {
  /// What experts return, for the gradients of the router's weights.
  bool has_results = false;
  /// Selective recomputation leaves out what norms and activation functions return, also in a layer
  /// without experts.
  bool repeats_norms = false;
};

/// A model as a search needs it.
struct ModelShape {
  /// @throws SpecError that names the missing figure.
  explicit ModelShape(const ModelFigures& model, const Keeping& keeping = {});

  LayerShape dense{}, sparse{};   ///< layers without and with experts
  double embedding = 0;           ///< parameters of the vocabulary's table
  double query_width = 0;         ///< elements of all queries of a token
  double scores = 0;              ///< bytes per token and layer that plain attention keeps
  double kept_layer_input = 0;    ///< bytes per token that full recomputation keeps of a layer
  double kept_last_norm = 0;      ///< bytes per token that the norm before the loss keeps
  double all_parameters = 0;      ///< of the whole model
  double expert_parameters = 0;   ///< of all experts of all layers
  std::int64_t dense_layers = 0;  ///< the first layers, which have no experts
  std::int64_t kv_heads = 0;      ///< heads of the keys
};

/// Returns how many parameters the layers and the vocabulary of a model have; 0 if figures of them
/// are missing or not possible.
[[nodiscard]] double counted_parameters(const ModelFigures& model);

}  // namespace rankmesh::search
