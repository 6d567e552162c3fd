// SPDX-License-Identifier: BSD-3-Clause
// Estimates the bytes that the families of a mesh send in one training step of a transformer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/place/traffic.hpp"

namespace rankmesh {

/// How the members of a data-parallel group share the optimizer.
enum class OptimizerSharing : std::uint8_t {
  replicated,   ///< each rank has the whole optimizer state: the gradients are all-reduced
  distributed,  ///< ZeRO 1 and 2: gradients are reduce-scattered, parameters are all-gathered
  fsdp,         ///< ZeRO 3: parameters are all-gathered `gathers` times, gradients are
                ///< reduce-scattered
};

/// The figures of a transformer and of its training step. docs/placement.md describes the TOML file
/// that contains them.
struct ModelFigures {
  std::string name;                        ///< for example `Llama 3 405B`
  std::int64_t layers = 0;                 ///< transformer layers of the whole model
  std::int64_t hidden = 0;                 ///< h, elements
  std::int64_t kv_hidden = 0;              ///< elements of the keys of one token; 0 means `hidden`
  std::int64_t parameters = 0;             ///< of the whole model, experts included
  std::int64_t replicated_parameters = 0;  ///< those parameters that tp does not divide (norms)
  std::int64_t sequence = 0;               ///< s, tokens
  std::int64_t batch = 1;                  ///< b, sequences of a microbatch
  std::int64_t microbatches = 1;           ///< m, per pipeline and step
  std::int64_t virtual_stages = 1;         ///< v, of an interleaved schedule
  std::int64_t activation_bytes = 2;       ///< bytes of an activation
  std::int64_t parameter_bytes = 2;        ///< bytes of a gathered parameter
  std::int64_t gradient_bytes = 4;         ///< bytes of a reduced gradient
  bool sequence_parallel = true;           ///< of tensor-parallel groups
  bool full_recomputation = false;         ///< the forward pass is repeated
  OptimizerSharing optimizer = OptimizerSharing::distributed;  ///< what data-parallel ranks share
  std::int64_t gathers = 2;            ///< how often a step gathers each parameter, with `fsdp`
  std::int64_t vocabulary = 0;         ///< V, tokens; 0 leaves out the embedding and the loss
  bool tied_embedding = false;         ///< the first and the last stage have the same embedding
  std::int64_t expert_layers = 0;      ///< layers with experts
  std::int64_t expert_parameters = 0;  ///< of all experts of all layers
  std::int64_t experts_per_token = 0;  ///< k
  std::int64_t nodes_per_token = 0;    ///< the greatest number of nodes that get a token; 0: no
                                       ///< limit
  std::int64_t dispatch_bytes = 2;     ///< bytes of an activation that is sent to an expert
  std::int64_t combine_bytes = 2;      ///< bytes of an activation that an expert returns

  // What a search needs as well (`meshinfo search`); estimate() does not read it.
  std::int64_t heads = 0;                ///< a, heads of the attention
  std::int64_t kv_heads = 0;             ///< heads of the keys; 0 means `heads`
  std::int64_t head_size = 0;            ///< elements of a head; 0 means hidden / heads
  std::int64_t feed_forward = 0;         ///< f, elements inside the MLP
  bool gated = false;                    ///< the MLP has three matrices (SwiGLU) instead of two
  bool dropout = false;                  ///< masks are kept for the backward pass
  std::int64_t experts = 0;              ///< of one layer that has experts
  std::int64_t expert_feed_forward = 0;  ///< f of one expert; 0 means `feed_forward`
  std::int64_t shared_experts = 0;       ///< experts of a layer that every token visits
  std::int64_t query_rank = 0;           ///< latent attention: elements of a compressed query
  std::int64_t latent_rank = 0;          ///< latent attention: elements of compressed keys; or 0
  std::int64_t rope_size = 0;            ///< latent attention: elements of a head that rotate
  std::int64_t value_size = 0;           ///< elements of the value of a head; 0 means `head_size`

  /// Reads the figures from the text of a TOML file.
  /// @throws SpecError with the place and the reason if the text is invalid.
  static ModelFigures parse_toml(std::string_view text, std::string_view origin);
};

/// The sizes of the families that send bytes in a training step, for the functions below.
struct MeshSizes {
  std::int64_t t = 1;  ///< tp
  std::int64_t p = 1;  ///< pp
  std::int64_t c = 1;  ///< cp
  std::int64_t e = 1;  ///< ep
};

/// Return the bytes that a rank sends in one step in tp, in pp (in each direction), in cp and in
/// ep, as the mean over the stages; 0 in groups of one rank. docs/placement.md has the formulas.
/// @throws SpecError if the number overflows, or if a figure is missing.
[[nodiscard]] std::int64_t tensor_bytes(const ModelFigures& model, const MeshSizes& sizes);
[[nodiscard]] std::int64_t pipeline_bytes(const ModelFigures& model, const MeshSizes& sizes);
[[nodiscard]] std::int64_t context_bytes(const ModelFigures& model, const MeshSizes& sizes);
[[nodiscard]] std::int64_t expert_bytes(const ModelFigures& model, const MeshSizes& sizes);
/// Returns the greatest number of the bytes of ep that leave the node of a rank; 0: no limit.
[[nodiscard]] std::int64_t expert_bytes_between_nodes(const ModelFigures& model,
                                                      const MeshSizes& sizes);
/// Returns the bytes that a rank sends for gradients and parameters to its d - 1 replicas.
/// @param held  the parameters that `shards` ranks hold together.
[[nodiscard]] std::int64_t data_bytes(const ModelFigures& model, std::int64_t held,
                                      std::int64_t shards, std::int64_t d);

/// The bytes that one family sends, and the formula by which they were computed.
struct FamilyVolume {
  FamilyTraffic traffic;  ///< the family, its bytes and their pattern
  std::string formula;    ///< in the symbols of docs/placement.md
  std::string source;     ///< the publication and its section
};

/// Returns the volumes of the families tp, pp, cp, ep, edp, embd, of dp (or of `dp_cp`, if there is
/// such a family), and of `tp_dp_cp` if the model has replicated parameters. Families with groups
/// of one rank, and families with other names, are left out. If the stages of a pipeline send
/// different numbers of bytes, the volume is their mean, rounded up. The volume of pp is the number
/// of bytes that two neighbouring stages send to each other in each direction.
/// @throws SpecError if the layers cannot be divided into the stages, or if a figure is missing.
[[nodiscard]] std::vector<FamilyVolume> estimate(const MeshPlan& plan, const ModelFigures& model);

}  // namespace rankmesh
