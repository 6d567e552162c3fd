// SPDX-License-Identifier: BSD-3-Clause
// The formulas of volumes. Each one names its source; docs/placement.md lists them.
#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "place/model.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/role.hpp"

namespace rankmesh {
namespace {

__extension__ using Wide = __int128;

// Returns a product of whole numbers, divided once at the end, rounded up.
std::int64_t quotient(std::initializer_list<Wide> factors, std::initializer_list<Wide> divisors) {
  Wide value = 1, divisor = 1;
  bool fits = true;
  for (const Wide factor : factors) fits = fits && !__builtin_mul_overflow(value, factor, &value);
  for (const Wide factor : divisors)
    fits = fits && !__builtin_mul_overflow(divisor, factor, &divisor);
  const Wide result = value / divisor + (value % divisor == 0 ? 0 : 1);
  if (!fits || result > Wide{1} << 60)
    throw SpecError{"the number of bytes that the model sends overflows",
                    "check the figures of the model"};
  return static_cast<std::int64_t>(result);
}

// The tokens of a rank in one microbatch, before tp divides them.
std::int64_t tokens_of(const ModelFigures& model, const MeshSizes& sizes) {
  return (model.batch * model.sequence + sizes.c - 1) / sizes.c;
}

// 2 all-reduces per block, of 2 (t-1)/t each. With sequence parallelism another all-gather: a block
// gathers its input again for the backward pass. Recomputation repeats the forward pass.
std::int64_t collectives_per_block(const ModelFigures& model) {
  return 4 + (model.sequence_parallel ? 1 : 0) + (model.full_recomputation ? 2 : 0);
}

// The embedding sums its rows, and the prediction gathers its input, as a block does once; the loss
// reduces three numbers per token.
std::int64_t elements_at_ends(const ModelFigures& model) {
  return model.vocabulary == 0 ? 0 : (model.sequence_parallel ? 5 : 4) * model.hidden + 6;
}

// The keys and values of all members are gathered (3.3.2). In the backward pass they are gathered
// again, and their gradients are reduce-scattered; the paper does not count this, Megatron-LM
// does it.
std::int64_t passes_of_keys(const ModelFigures& model) {
  return model.full_recomputation ? 4 : 3;  // backward counts twice
}

}  // namespace

// A layer has two blocks, attention and MLP. Experts take the place of the MLP, and send over ep.
std::int64_t tensor_bytes(const ModelFigures& model, const MeshSizes& sizes) {
  if (sizes.t < 2) return 0;
  return quotient(
      {Wide{collectives_per_block(model)} * (2 * model.layers - model.expert_layers) *
               model.hidden +
           elements_at_ends(model),
       model.microbatches, tokens_of(model, sizes), sizes.t - 1, model.activation_bytes},
      {sizes.p, sizes.t});
}

// b s h per microbatch in the forward pass, and again in the backward pass (3.2); v times as much
// with an interleaved schedule (2.2.2); 1/t of it if the members of a tensor-parallel group send
// different parts (4.1).
std::int64_t pipeline_bytes(const ModelFigures& model, const MeshSizes& sizes) {
  if (sizes.p < 2) return 0;
  return quotient({model.microbatches, model.virtual_stages, tokens_of(model, sizes), model.hidden,
                   model.activation_bytes},
                  {model.sequence_parallel ? sizes.t : 1});
}

std::int64_t context_bytes(const ModelFigures& model, const MeshSizes& sizes) {
  if (sizes.c < 2) return 0;
  return quotient({passes_of_keys(model), 2 * model.microbatches, model.layers,
                   tokens_of(model, sizes), model.kv_hidden, sizes.c - 1, model.activation_bytes},
                  {sizes.p, sizes.t});
}

namespace {

// What experts receive and return, without the number of experts of a token.
Wide exchanged(const ModelFigures& model, const MeshSizes& sizes) {
  return Wide{2} * (model.dispatch_bytes + model.combine_bytes) * model.microbatches *
         model.expert_layers * tokens_of(model, sizes) * model.hidden;
}

}  // namespace

// Each token is sent to k experts, and its results come back, in both passes. The paper gives the
// two exchanges (3.2.2) and their widths (3.3.3), but no formula. A fraction (e-1)/e of equally
// loaded experts is on other ranks.
std::int64_t expert_bytes(const ModelFigures& model, const MeshSizes& sizes) {
  if (sizes.e < 2 || model.expert_layers == 0) return 0;
  if (model.experts_per_token == 0)
    throw SpecError{"the model has layers of experts, but no 'experts_per_token'",
                    "write experts_per_token = 8"};
  return quotient({exchanged(model, sizes), model.experts_per_token, sizes.e - 1},
                  {sizes.p, sizes.t, sizes.e});
}

// A token is sent once to each of its nodes, and there to its experts (3.2.2): M copies of it leave
// the node at most, instead of k (e-1)/e.
std::int64_t expert_bytes_between_nodes(const ModelFigures& model, const MeshSizes& sizes) {
  if (model.nodes_per_token == 0 || model.nodes_per_token >= model.experts_per_token) return 0;
  return std::min(expert_bytes(model, sizes),
                  quotient({exchanged(model, sizes), model.nodes_per_token}, {sizes.p, sizes.t}));
}

// `held` parameters are divided by `shards`. An all-reduce is a reduce-scatter and an all-gather
// (7.1). With sharded gradients there are one of each (7.2.1), and with sharded parameters one more
// all-gather (7.2.2). The paper rounds (d-1)/d up to 1.
std::int64_t data_bytes(const ModelFigures& model, std::int64_t held, std::int64_t shards,
                        std::int64_t d) {
  if (d < 2) return 0;
  std::int64_t bytes = 2 * model.gradient_bytes;
  if (model.optimizer == OptimizerSharing::distributed)
    bytes = model.gradient_bytes + model.parameter_bytes;
  else if (model.optimizer == OptimizerSharing::fsdp)
    bytes = model.gradient_bytes + model.gathers * model.parameter_bytes;
  return quotient({held, bytes, d - 1}, {shards, d});
}

namespace {

const GroupFamily* find(const MeshPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.families(), name, &GroupFamily::name);
  return found == plan.families().end() ? nullptr : &*found;
}

std::int64_t size_of(const MeshPlan& plan, std::string_view name) {
  const GroupFamily* family = find(plan, name);
  return family == nullptr ? 1 : family->group_size();
}

// The volumes with their formulas and sources.
struct Estimator {
  const MeshPlan& plan;
  const ModelFigures& model;
  MeshSizes sizes;
  std::vector<FamilyVolume> volumes{};

  void add(std::string name, std::int64_t bytes, Pattern pattern, std::string formula,
           std::string source) {
    volumes.push_back({{std::move(name), bytes, pattern}, std::move(formula), std::move(source)});
  }

  void tensor() {
    if (sizes.t < 2) return;
    const std::int64_t count = collectives_per_block(model);
    add("tp", tensor_bytes(model, sizes), Pattern::ring,
        model.expert_layers == 0 ? fmt::format("m L' {} b (s/c) h (t-1)/t", 2 * count)
                                 : fmt::format("m (2 L' - L'_moe) {} b (s/c) h (t-1)/t", count),
        model.sequence_parallel || model.full_recomputation
            ? "Narayanan et al. 2021 (2104.04473), 3.2; Korthikanti et al. 2022 (2205.05198), 4.2.2"
            : "Narayanan et al. 2021 (2104.04473), 3.2");
    if (elements_at_ends(model) == 0) return;
    volumes.back().formula +=
        fmt::format(" + m b (s/c) ({} h + 6) (t-1)/(t p)", model.sequence_parallel ? 5 : 4);
    volumes.back().source += "; Shoeybi et al. 2019 (1909.08053), 3";
  }

  void pipeline() {
    if (sizes.p < 2) return;
    add("pp", pipeline_bytes(model, sizes), Pattern::chain,
        fmt::format("m v b (s/c) h{} in each direction", model.sequence_parallel ? " / t" : ""),
        "Narayanan et al. 2021 (2104.04473), 2.2.2, 3.2 and 4.1");
  }

  void context() {
    if (sizes.c < 2) return;
    add("cp", context_bytes(model, sizes), Pattern::ring,
        fmt::format("{} m L' 2 b (s/c) (h_kv/t) (c-1)", passes_of_keys(model)),
        "Llama Team 2024 (2407.21783), 3.3.2; backward: Megatron-LM, \"Context parallelism\"");
  }

  void experts() {
    if (sizes.e < 2 || model.expert_layers == 0) return;
    add("ep", expert_bytes(model, sizes), Pattern::all_to_all,
        "m L'_moe 2 (w_dispatch + w_combine) b s/(c t) k h (e-1)/e",
        "DeepSeek-AI 2024 (2412.19437), 3.2.2 and 3.3.3");
    volumes.back().traffic.most_between_nodes = expert_bytes_between_nodes(model, sizes);
    if (volumes.back().traffic.most_between_nodes > 0)
      volumes.back().formula +=
          fmt::format("; at most {} instead of k (e-1)/e between nodes", model.nodes_per_token);
  }

  void data(std::string_view name, std::int64_t held, std::int64_t shards,
            OptimizerSharing optimizer) {
    const std::int64_t d = size_of(plan, name);
    if (d < 2 || held == 0) return;
    std::string formula;
    std::string source = "Rajbhandari et al. 2020 (1910.02054), ";
    switch (optimizer) {
      case OptimizerSharing::replicated:
        formula = "2 P w_grad (d-1)/d";
        source += "7.1";
        break;
      case OptimizerSharing::distributed:
        formula = "P (w_grad + w_param) (d-1)/d";
        source += "7.2.1";
        break;
      case OptimizerSharing::fsdp:
        formula = fmt::format("P (w_grad + {} w_param) (d-1)/d", model.gathers);
        source += "7.2.2";
        break;
    }
    ModelFigures figures = model;
    figures.optimizer = optimizer;
    add(std::string{name}, data_bytes(figures, held, shards, d), Pattern::ring, formula, source);
  }

  // The parameters of the embedding's copy on the last stage.
  [[nodiscard]] std::int64_t second_embedding() const {
    return model.tied_embedding && sizes.p > 1 ? model.vocabulary * model.hidden : 0;
  }

  // The first and the last stage add up the gradients of the embedding.
  void embedding() {
    if (second_embedding() == 0 || find(plan, "embd") == nullptr) return;
    add("embd", quotient({second_embedding(), model.gradient_bytes}, {sizes.t}), Pattern::ring,
        "V h/t w_grad", "Megatron-LM's embedding group (megatron/core/parallel_state.py)");
  }
};

// The formulas know each kind of parallelism by its usual name. A mesh that has it only by another
// name would be estimated as if it had none.
void require_known_names(const MeshPlan& plan) {
  const auto require = [&](FamilyRole role, std::initializer_list<std::string_view> known) {
    if (std::ranges::any_of(known,
                            [&](std::string_view name) { return find(plan, name) != nullptr; }))
      return;
    for (const GroupFamily& family : plan.families())
      if (role_of(family.name()) == role && family.group_size() > 1)
        throw SpecError{fmt::format("the formulas have no {}: they know {} parallelism as {}",
                                    family.name(), to_string(role), *known.begin()),
                        fmt::format("write {}={} in place of {}={}", *known.begin(),
                                    family.group_size(), family.name(), family.group_size())};
  };
  require(FamilyRole::tensor, {"tp"});
  require(FamilyRole::pipeline, {"pp"});
  require(FamilyRole::context, {"cp"});
  require(FamilyRole::expert, {"ep"});
  require(FamilyRole::data, {"dp", "dp_cp", "fsdp"});
  require(FamilyRole::sharded, {"fsdp"});
}

}  // namespace

std::vector<FamilyVolume> estimate(const MeshPlan& plan, const ModelFigures& model) {
  require_known_names(plan);
  Estimator estimator{.plan = plan,
                      .model = model,
                      .sizes = {.t = size_of(plan, "tp"),
                                .p = size_of(plan, "pp"),
                                .c = size_of(plan, "cp"),
                                .e = size_of(plan, "ep")}};
  const MeshSizes& sizes = estimator.sizes;
  if (sizes.p > model.layers)
    throw SpecError{
        fmt::format("the model has {} layers, but the mesh has {} stages", model.layers, sizes.p),
        "use fewer stages"};
  estimator.tensor();
  estimator.pipeline();
  estimator.context();
  estimator.experts();
  const std::string_view all_data = find(plan, "dp_cp") != nullptr  ? "dp_cp"
                                    : find(plan, "fsdp") != nullptr ? "fsdp"
                                                                    : "dp";
  // The gradients of parameters that all members of tp have are also reduced over tp, if the mesh
  // has a tp family.
  const std::int64_t replicated =
      find(plan, "tp_dp_cp") == nullptr ? 0 : model.replicated_parameters;
  // Without a family of its own for the replicas of experts, they are those of other parameters.
  const bool has_expert_data = find(plan, "edp") != nullptr || find(plan, "expt_dp") != nullptr;
  const std::int64_t experts = has_expert_data ? 0 : model.expert_parameters / sizes.e;
  const std::int64_t held = model.parameters - model.expert_parameters + experts - replicated +
                            estimator.second_embedding();
  estimator.data(all_data, held, sizes.t * sizes.p, model.optimizer);
  // Replicas of the shards of fsdp add up the gradients of a shard. If both exist, `dp` may be the
  // product of dp_replicate and fsdp.
  if (all_data == "fsdp")
    estimator.data(find(plan, "dp_replicate") != nullptr ? "dp_replicate" : "dp", held,
                   sizes.t * sizes.p * size_of(plan, "fsdp"), OptimizerSharing::replicated);
  estimator.data("tp_dp_cp", replicated, sizes.p, model.optimizer);
  estimator.embedding();
  // Megatron's preset has the prefix `expt_`.
  const std::int64_t etp = size_of(plan, "etp") * size_of(plan, "expt_tp");
  for (const char* name : {"edp", "expt_dp"})
    if (find(plan, name) != nullptr)
      estimator.data(name, model.expert_parameters, etp * sizes.e * sizes.p, model.optimizer);
  return std::move(estimator.volumes);
}

}  // namespace rankmesh
