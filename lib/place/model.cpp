// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/model.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "rankmesh/base/error.hpp"
#include "spec/detail/toml_reader.hpp"

namespace rankmesh {

ModelFigures ModelFigures::parse_toml(std::string_view text, std::string_view origin) {
  const toml::table table = detail::parse_toml(text, origin);
  const detail::TomlReader reader{table, origin};
  static const std::vector<std::string> keys{"name",
                                             "layers",
                                             "hidden",
                                             "kv_hidden",
                                             "parameters",
                                             "replicated_parameters",
                                             "sequence",
                                             "batch",
                                             "microbatches",
                                             "virtual_stages",
                                             "activation_bytes",
                                             "parameter_bytes",
                                             "gradient_bytes",
                                             "optimizer",
                                             "gathers",
                                             "vocabulary",
                                             "tied_embedding",
                                             "sequence_parallel",
                                             "full_recomputation",
                                             "expert_layers",
                                             "expert_parameters",
                                             "experts_per_token",
                                             "nodes_per_token",
                                             "dispatch_bytes",
                                             "combine_bytes",
                                             "source",
                                             "heads",
                                             "kv_heads",
                                             "head_size",
                                             "feed_forward",
                                             "gated",
                                             "dropout",
                                             "experts",
                                             "expert_feed_forward",
                                             "shared_experts",
                                             "query_rank",
                                             "latent_rank",
                                             "rope_size",
                                             "value_size"};
  reader.require_known_keys(keys);
  ModelFigures model;
  constexpr std::int64_t most = std::int64_t{1} << 50;
  const auto read = [&](std::string_view key, std::int64_t& to, bool is_required,
                        std::int64_t least, std::int64_t limit = std::int64_t{1} << 24) {
    const auto number = reader.number(key, least, limit);
    if (!number && is_required)
      reader.refuse(0, fmt::format("the model has no '{}'", key),
                    fmt::format("write {} = NUMBER", key));
    to = number.value_or(to);
  };
  model.name = reader.text("name");
  read("layers", model.layers, true, 1);
  read("hidden", model.hidden, true, 1);
  read("kv_hidden", model.kv_hidden, false, 1);
  read("parameters", model.parameters, true, 1, most);
  read("replicated_parameters", model.replicated_parameters, false, 0, most);
  read("sequence", model.sequence, true, 1);
  read("batch", model.batch, false, 1);
  read("microbatches", model.microbatches, false, 1);
  read("virtual_stages", model.virtual_stages, false, 1);
  read("activation_bytes", model.activation_bytes, false, 1, 8);
  read("parameter_bytes", model.parameter_bytes, false, 1, 8);
  read("gradient_bytes", model.gradient_bytes, false, 1, 8);
  read("expert_layers", model.expert_layers, false, 0);
  read("expert_parameters", model.expert_parameters, false, 0, most);
  read("experts_per_token", model.experts_per_token, false, 0);
  read("nodes_per_token", model.nodes_per_token, false, 1);
  read("dispatch_bytes", model.dispatch_bytes, false, 1, 8);
  read("combine_bytes", model.combine_bytes, false, 1, 8);
  read("gathers", model.gathers, false, 1);
  read("vocabulary", model.vocabulary, false, 1);
  read("heads", model.heads, false, 1);
  read("kv_heads", model.kv_heads, false, 1);
  read("head_size", model.head_size, false, 1);
  read("feed_forward", model.feed_forward, false, 1);
  read("experts", model.experts, false, 1);
  read("expert_feed_forward", model.expert_feed_forward, false, 1);
  read("shared_experts", model.shared_experts, false, 0);
  read("query_rank", model.query_rank, false, 1);
  read("latent_rank", model.latent_rank, false, 1);
  read("rope_size", model.rope_size, false, 1);
  read("value_size", model.value_size, false, 1);
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
