// SPDX-License-Identifier: BSD-3-Clause
// The formulas of volumes. Each one names its source; docs/placement.md lists them.
#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "place/model.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

__extension__ using Wide = __int128;

// Returns a product of whole numbers, divided once at the end, rounded up.
std::int64_t quotient(std::initializer_list<Wide> factors, std::initializer_list<Wide> divisors) {
  Wide value = 1, divisor = 1;
  for (const Wide factor : factors) value *= factor;
  for (const Wide factor : divisors) divisor *= factor;
  const Wide result = (value + divisor - 1) / divisor;
  if (result > Wide{1} << 60)
    throw SpecError{"the number of bytes that the model sends overflows",
                    "check the figures of the model"};
  return static_cast<std::int64_t>(result);
}

const GroupFamily* find(const MeshPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.families(), name, &GroupFamily::name);
  return found == plan.families().end() ? nullptr : &*found;
}

std::int64_t size_of(const MeshPlan& plan, std::string_view name) {
  const GroupFamily* family = find(plan, name);
  return family == nullptr ? 1 : family->group_size();
}

struct Estimator {
  const MeshPlan& plan;
  const ModelFigures& model;
  std::int64_t t, p, c, e, tokens;  // tokens: the tokens of a rank in one microbatch, before tp
  std::vector<FamilyVolume> volumes{};

  void add(std::string name, std::int64_t bytes, Pattern pattern, std::string formula,
           std::string source) {
    volumes.push_back({{std::move(name), bytes, pattern}, std::move(formula), std::move(source)});
  }

  // 2 all-reduces per block, of 2 (t-1)/t each. With sequence parallelism another all-gather: a
  // block gathers its input again for the backward pass. Recomputation repeats the forward pass.
  // A layer has two blocks, attention and MLP. Experts take the place of the MLP, and send over ep.
  // The embedding sums its rows, and the prediction gathers its input, as a block does once; the
  // loss reduces three numbers per token.
  void tensor() {
    if (t < 2) return;
    const std::int64_t count =
        4 + (model.sequence_parallel ? 1 : 0) + (model.full_recomputation ? 2 : 0);
    const std::int64_t blocks = 2 * model.layers - model.expert_layers;
    const std::int64_t at_ends =
        model.vocabulary == 0 ? 0 : (model.sequence_parallel ? 5 : 4) * model.hidden + 6;
    add("tp",
        quotient({Wide{count} * blocks * model.hidden + at_ends, model.microbatches, tokens, t - 1,
                  model.activation_bytes},
                 {p, t}),
        Pattern::ring,
        model.expert_layers == 0 ? fmt::format("m L' {} b (s/c) h (t-1)/t", 2 * count)
                                 : fmt::format("m (2 L' - L'_moe) {} b (s/c) h (t-1)/t", count),
        model.sequence_parallel || model.full_recomputation
            ? "Narayanan et al. 2021 (2104.04473), 3.2; Korthikanti et al. 2022 (2205.05198), 4.2.2"
            : "Narayanan et al. 2021 (2104.04473), 3.2");
    if (at_ends == 0) return;
    volumes.back().formula +=
        fmt::format(" + m b (s/c) ({} h + 6) (t-1)/(t p)", model.sequence_parallel ? 5 : 4);
    volumes.back().source += "; Shoeybi et al. 2019 (1909.08053), 3";
  }

  // b s h per microbatch in the forward pass, and again in the backward pass (3.2); v times as much
  // with an interleaved schedule (2.2.2); 1/t of it if the members of a tensor-parallel group send
  // different parts (4.1).
  void pipeline() {
    if (p < 2) return;
    add("pp",
        quotient({model.microbatches, model.virtual_stages, tokens, model.hidden,
                  model.activation_bytes},
                 {model.sequence_parallel ? t : 1}),
        Pattern::chain,
        fmt::format("m v b (s/c) h{} in each direction", model.sequence_parallel ? " / t" : ""),
        "Narayanan et al. 2021 (2104.04473), 2.2.2, 3.2 and 4.1");
  }

  // The keys and values of all members are gathered (3.3.2). In the backward pass they are gathered
  // again, and their gradients are reduce-scattered; the paper does not count this, Megatron-LM
  // does it.
  void context() {
    if (c < 2) return;
    const std::int64_t passes = model.full_recomputation ? 4 : 3;  // backward counts twice
    add("cp",
        quotient({passes, 2, model.microbatches, model.layers, tokens, model.kv_hidden, c - 1,
                  model.activation_bytes},
                 {p, t}),
        Pattern::ring, fmt::format("{} m L' 2 b (s/c) (h_kv/t) (c-1)", passes),
        "Llama Team 2024 (2407.21783), 3.3.2; backward: Megatron-LM, \"Context parallelism\"");
  }

  // Each token is sent to k experts, and its results come back, in both passes. The paper gives the
  // two exchanges (3.2.2) and their widths (3.3.3), but no formula. A fraction (e-1)/e of equally
  // loaded experts is on other ranks.
  void experts() {
    if (e < 2 || model.expert_layers == 0) return;
    if (model.experts_per_token == 0)
      throw SpecError{"the model has layers of experts, but no 'experts_per_token'",
                      "write experts_per_token = 8"};
    // Without the experts of a token, or the nodes that stand for them.
    const Wide sent = Wide{2} * (model.dispatch_bytes + model.combine_bytes) * model.microbatches *
                      model.expert_layers * tokens * model.hidden;
    add("ep", quotient({sent, model.experts_per_token, e - 1}, {p, t, e}), Pattern::all_to_all,
        "m L'_moe 2 (w_dispatch + w_combine) b s/(c t) k h (e-1)/e",
        "DeepSeek-AI 2024 (2412.19437), 3.2.2 and 3.3.3");
    if (model.nodes_per_token == 0 || model.nodes_per_token >= model.experts_per_token) return;
    // A token is sent once to each of its nodes, and there to its experts (3.2.2): M copies of it
    // leave the node at most, instead of k (e-1)/e.
    FamilyTraffic& traffic = volumes.back().traffic;
    traffic.most_between_nodes =
        std::min(traffic.bytes, quotient({sent, model.nodes_per_token}, {p, t}));
    volumes.back().formula +=
        fmt::format("; at most {} instead of k (e-1)/e between nodes", model.nodes_per_token);
  }

  // `held` parameters of the whole model are divided by `shards`. An all-reduce is a reduce-scatter
  // and an all-gather (7.1). With sharded gradients there are one of each (7.2.1), and with sharded
  // parameters one more all-gather (7.2.2). The paper rounds (d-1)/d up to 1.
  void data(std::string_view name, std::int64_t held, std::int64_t shards) {
    const std::int64_t d = size_of(plan, name);
    if (d < 2 || held == 0) return;
    const std::int64_t gradients = model.gradient_bytes;
    const std::int64_t parameters = model.parameter_bytes;
    std::int64_t bytes = 0;
    std::string formula;
    std::string source = "Rajbhandari et al. 2020 (1910.02054), ";
    switch (model.optimizer) {
      case OptimizerSharing::replicated:
        bytes = 2 * gradients;
        formula = "2 P w_grad (d-1)/d";
        source += "7.1";
        break;
      case OptimizerSharing::distributed:
        bytes = gradients + parameters;
        formula = "P (w_grad + w_param) (d-1)/d";
        source += "7.2.1";
        break;
      case OptimizerSharing::fsdp:
        bytes = gradients + model.gathers * parameters;
        formula = fmt::format("P (w_grad + {} w_param) (d-1)/d", model.gathers);
        source += "7.2.2";
        break;
    }
    add(std::string{name}, quotient({held, bytes, d - 1}, {shards, d}), Pattern::ring, formula,
        source);
  }

  // The parameters of the embedding's copy on the last stage.
  [[nodiscard]] std::int64_t second_embedding() const {
    return model.tied_embedding && p > 1 ? model.vocabulary * model.hidden : 0;
  }

  // The first and the last stage add up the gradients of the embedding.
  void embedding() {
    if (second_embedding() == 0 || find(plan, "embd") == nullptr) return;
    add("embd", quotient({second_embedding(), model.gradient_bytes}, {t}), Pattern::ring,
        "V h/t w_grad", "Megatron-LM's embedding group (megatron/core/parallel_state.py)");
  }
};

}  // namespace

std::vector<FamilyVolume> estimate(const MeshPlan& plan, const ModelFigures& model) {
  Estimator estimator{.plan = plan,
                      .model = model,
                      .t = size_of(plan, "tp"),
                      .p = size_of(plan, "pp"),
                      .c = size_of(plan, "cp"),
                      .e = size_of(plan, "ep"),
                      .tokens = 0};
  if (estimator.p > model.layers)
    throw SpecError{fmt::format("the model has {} layers, but the mesh has {} stages", model.layers,
                                estimator.p),
                    "use fewer stages"};
  estimator.tokens = (model.batch * model.sequence + estimator.c - 1) / estimator.c;
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
  estimator.data(
      all_data,
      model.parameters - model.expert_parameters - replicated + estimator.second_embedding(),
      estimator.t * estimator.p);
  estimator.data("tp_dp_cp", replicated, estimator.p);
  estimator.embedding();
  // Megatron's preset has the prefix `expt_`.
  const std::int64_t etp = size_of(plan, "etp") * size_of(plan, "expt_tp");
  for (const char* name : {"edp", "expt_dp"})
    if (find(plan, name) != nullptr)
      estimator.data(name, model.expert_parameters, etp * estimator.e * estimator.p);
  return std::move(estimator.volumes);
}

}  // namespace rankmesh
