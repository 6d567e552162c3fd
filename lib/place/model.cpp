// SPDX-License-Identifier: BSD-3-Clause
#include "place/model.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "rankmesh/base/error.hpp"
#include "spec/detail/toml_reader.hpp"

namespace rankmesh {

namespace {

constexpr std::int64_t usual_limit = std::int64_t{1} << 24;
constexpr std::int64_t most_parameters = std::int64_t{1} << 50;

// A key whose value is a number.
struct NumberKey {
  std::string_view name;
  std::int64_t ModelFigures::*to;
  std::int64_t least, most = usual_limit;
  bool is_required = false;
};

using M = ModelFigures;
constexpr NumberKey number_keys[] = {
    {"layers", &M::layers, 1, usual_limit, true},
    {"hidden", &M::hidden, 1, usual_limit, true},
    {"kv_hidden", &M::kv_hidden, 1},
    {"parameters", &M::parameters, 1, most_parameters, true},
    {"replicated_parameters", &M::replicated_parameters, 0, most_parameters},
    {"sequence", &M::sequence, 1, usual_limit, true},
    {"batch", &M::batch, 1},
    {"microbatches", &M::microbatches, 1},
    {"virtual_stages", &M::virtual_stages, 1},
    {"activation_bytes", &M::activation_bytes, 1, 8},
    {"parameter_bytes", &M::parameter_bytes, 1, 8},
    {"gradient_bytes", &M::gradient_bytes, 1, 8},
    {"gathers", &M::gathers, 1},
    {"vocabulary", &M::vocabulary, 1},
    {"expert_layers", &M::expert_layers, 0},
    {"expert_parameters", &M::expert_parameters, 0, most_parameters},
    {"experts_per_token", &M::experts_per_token, 0},
    {"nodes_per_token", &M::nodes_per_token, 1},
    {"dispatch_bytes", &M::dispatch_bytes, 1, 8},
    {"combine_bytes", &M::combine_bytes, 1, 8},
    {"heads", &M::heads, 1},
    {"kv_heads", &M::kv_heads, 1},
    {"head_size", &M::head_size, 1},
    {"feed_forward", &M::feed_forward, 1},
    {"experts", &M::experts, 1},
    {"expert_feed_forward", &M::expert_feed_forward, 1},
    {"shared_experts", &M::shared_experts, 0},
    {"query_rank", &M::query_rank, 1},
    {"latent_rank", &M::latent_rank, 1},
    {"rope_size", &M::rope_size, 1},
    {"value_size", &M::value_size, 1}};

}  // namespace

ModelFigures ModelFigures::parse_toml(std::string_view text, std::string_view origin) {
  const toml::table table = detail::parse_toml(text, origin);
  const detail::TomlReader reader{table, origin};
  std::vector<std::string> keys{
      "name",   "optimizer", "tied_embedding", "sequence_parallel", "full_recomputation",
      "source", "gated",     "dropout"};
  for (const NumberKey& key : number_keys) keys.emplace_back(key.name);
  reader.require_known_keys(keys);
  ModelFigures model;
  model.name = reader.text("name");
  for (const NumberKey& key : number_keys) {
    const auto number = reader.number(key.name, key.least, key.most);
    if (!number && key.is_required)
      reader.refuse(0, fmt::format("the model has no '{}'", key.name),
                    fmt::format("write {} = NUMBER", key.name));
    model.*key.to = number.value_or(model.*key.to);
  }
  model.gated = reader.flag("gated");
  model.dropout = reader.flag("dropout");
  model.tied_embedding = reader.flag("tied_embedding");
  model.sequence_parallel = reader.flag("sequence_parallel", true);
  model.full_recomputation = reader.flag("full_recomputation");
  const std::string optimizer = reader.text("optimizer");
  if (optimizer == "replicated")
    model.optimizer = OptimizerSharing::replicated;
  else if (optimizer == "fsdp")
    model.optimizer = OptimizerSharing::fsdp;
  else if (!optimizer.empty() && optimizer != "distributed")
    reader.refuse(reader.line("optimizer"), fmt::format("unknown optimizer '{:.40}'", optimizer),
                  "write replicated, distributed or fsdp");
  if (model.kv_hidden == 0) model.kv_hidden = model.hidden;
  if (model.expert_layers > model.layers)
    reader.refuse(reader.line("expert_layers"), "more layers have experts than there are layers",
                  "`layers` includes those with experts");
  if (model.expert_parameters > model.parameters)
    reader.refuse(reader.line("expert_parameters"),
                  "the experts have more parameters than the whole model",
                  "`parameters` includes the experts");
  if (model.replicated_parameters > model.parameters - model.expert_parameters)
    reader.refuse(reader.line("replicated_parameters"),
                  "more parameters are replicated than there are without experts",
                  "`parameters` includes the replicated parameters");
  return model;
}

}  // namespace rankmesh
