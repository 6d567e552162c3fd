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

  /// Reads the figures from the text of a TOML file.
  /// @throws SpecError with the place and the reason if the text is invalid.
  static ModelFigures parse_toml(std::string_view text, std::string_view origin);
};

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
