// SPDX-License-Identifier: BSD-3-Clause
// The memory of a device.
#include <algorithm>

#include "base/detail/text.hpp"
#include "place/count.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "search/cost.hpp"

namespace rankmesh::search {

std::vector<std::pair<std::string_view, double>> DeviceMemory::terms() const {
  return {{"weights", weights},         {"gradients", gradients},         {"optimizer", optimizer},
          {"activations", activations}, {"recomputed", recomputed},       {"logits", logits},
          {"gathered", gathered},       {"communicators", communicators}, {"context", context},
          {"reserve", reserve}};
}

std::string_view to_string(Fit fit) {
  return detail::name_in({"fits", "tight", "does not fit"}, fit);
}

StageShape CostModel::stage_of(const StageLayers& layers, std::int64_t p) const {
  StageShape stage{.stage = p, .has_embedding = p == 0, .has_loss = p == layers.stages() - 1};
  for (std::int64_t v = 0; v < layers.chunks(); ++v) {
    const auto run = layers.run(p, v);
    const std::int64_t dense =
        std::clamp<std::int64_t>(shape_.dense_layers - run.first, 0, run.count);
    stage.dense += dense;
    stage.sparse += run.count - dense;
  }
  return stage;
}

// Of equal stages the first has the most microbatches in flight, so the others are left out.
const std::vector<StageShape>& CostModel::stages_of(const MeshSettings& s) const {
  auto [found, is_new] = stages_.try_emplace({s.pp, s.virtual_stages, s.stages});
  if (!is_new) return found->second;
  const StageLayers layers = stage_layers(model_.layers, s);
  for (std::int64_t p = 0; p < s.pp; ++p) {
    const StageShape stage = stage_of(layers, p);
    const auto is_equal = [&](const StageShape& other) {
      return other.dense == stage.dense && other.sparse == stage.sparse &&
             other.has_embedding == stage.has_embedding && other.has_loss == stage.has_loss;
    };
    if (std::ranges::none_of(found->second, is_equal)) found->second.push_back(stage);
  }
  return found->second;
}

// The families that a training program has beside the dimensions: the replicas of parameters over
// dp and cp, and the two ends of a pipeline with a tied embedding.
double CostModel::communicators_of(const MeshSettings& s) const {
  auto [found, is_new] = communicators_.try_emplace({s.pp, s.dp, s.cp, s.tp, s.ep});
  if (!is_new) return found->second;
  std::string text = s.mesh();
  std::string families = s.cp > 1 && s.dp > 1 ? "dp_cp=dp*cp" : "";
  if (model_.tied_embedding && s.pp > 1)
    families += families.empty() ? "embd=ends(pp)" : ",embd=ends(pp)";
  if (!families.empty()) text += " ; " + families;
  found->second =
      static_cast<double>(count(MeshSpec::parse(text).plan()).communicators_per_rank.most);
  return found->second;
}

double CostModel::tokens(const MeshSettings& s) const {
  return static_cast<double>(model_.sequence) * s.micro_batch / s.cp;
}

// Bytes of a layer for one microbatch. Selective recomputation leaves out the scores of attention
// (2205.05198, section 5); where they are never kept, what norms and activations return.
double CostModel::kept_by_layer(const MeshSettings& s, const LayerShape& layer,
                                Recompute recompute) const {
  const double wide = static_cast<double>(model_.activation_bytes) / 2;  // the formulas count 2
  const double is_sequence = s.sequence_parallel ? s.tp : 1;
  if (recompute == Recompute::full) return tokens(s) * wide * shape_.kept_layer_input / is_sequence;
  const bool has_scores = !software_.has_flash_attention;
  const bool is_cheap = recompute == Recompute::selective && !has_scores;
  const double scores = has_scores && recompute == Recompute::none ? shape_.scores : 0;
  const double whole = layer.kept_whole - (is_cheap ? layer.cheap_whole : 0);
  const double divided = layer.kept_divided + scores - (is_cheap ? layer.cheap_divided : 0);
  const double inputs_whole = layer.inputs_whole - (is_cheap ? layer.cheap_whole : 0);
  const double inputs_divided = layer.inputs_divided - (is_cheap ? layer.cheap_inputs : 0);
  return tokens(s) * wide *
         ((whole - saved_of_inputs_ * inputs_whole) / is_sequence +
          (divided - saved_of_inputs_ * inputs_divided) / s.tp);
}

// 1F1B: stage r holds p - r microbatches. Interleaved: 2 (p - r - 1) + (v - 1) p + 1 of a chunk
// (Megatron-LM, schedules.py). ZeRO-3 and one stage hold one.
double CostModel::flying_of(const MeshSettings& s, const StageShape& stage) const {
  const double chunks = s.virtual_stages;
  const double later = static_cast<double>(s.pp - stage.stage - 1);
  const double flying =
      s.virtual_stages == 1 ? later + 1 : (2 * later + (chunks - 1) * s.pp + 1) / chunks;
  return std::min<double>(flying, s.microbatches);
}

DeviceMemory CostModel::memory_of(const MeshSettings& s, const StageShape& stage,
                                  double communicators) const {
  const double dense = static_cast<double>(stage.dense), sparse = static_cast<double>(stage.sparse);
  const double ends =
      (stage.has_embedding ? shape_.embedding : 0) +
      (stage.has_loss && !(model_.tied_embedding && stage.has_embedding) ? shape_.embedding : 0);
  const double held = dense * (shape_.dense.divided / s.tp + shape_.dense.replicated) +
                      sparse * (shape_.sparse.divided / s.tp + shape_.sparse.replicated) +
                      ends / s.tp;
  const double experts = sparse * shape_.sparse.expert / s.ep;
  const double replicas = static_cast<double>(s.dp) * s.cp;
  const double expert_replicas = std::max(1.0, replicas * s.tp / s.ep);
  const StateBytes& bytes = software_.states;
  const auto state = [&](double each, int least_zero) {
    const bool is_divided = s.zero >= least_zero;
    return each *
           (held / (is_divided ? replicas : 1) + experts / (is_divided ? expert_replicas : 1));
  };
  const bool is_whole = software_.accumulates && s.microbatches > 1;
  const double is_sequence = s.sequence_parallel ? s.tp : 1;
  const double hidden = static_cast<double>(model_.hidden);
  const double masks = stage.has_embedding && model_.dropout ? tokens(s) * hidden / is_sequence : 0;
  const auto kept = [&](Recompute recompute) {
    return std::pair{kept_by_layer(s, shape_.dense, recompute),
                     kept_by_layer(s, shape_.sparse, recompute)};
  };
  const auto [kept_dense, kept_sparse] = kept(s.recompute);
  const auto [all_dense, all_sparse] = kept(Recompute::none);
  DeviceMemory memory{
      .weights = state(bytes.weight, software_.shards_parameters ? 0 : 3),
      .gradients = state(bytes.gradient, is_whole ? 4 : 2),
      .optimizer = state(bytes.optimizer, 1),
      .activations = flying_of(s, stage) * (dense * kept_dense + sparse * kept_sparse + masks),
      .recomputed = std::max(dense > 0 ? all_dense - kept_dense : 0,
                             sparse > 0 ? all_sparse - kept_sparse : 0),
      .communicators = communicators * margins_.per_communicator,
      .context = margins_.context,
      .reserve = margins_.reserve,
      .stage = stage.stage};
  const double wide = static_cast<double>(model_.activation_bytes);
  if (stage.has_loss)
    memory.logits =
        tokens(s) * (software_.logit_bytes * static_cast<double>(model_.vocabulary) / s.tp +
                     wide / 2 * shape_.kept_last_norm / is_sequence);
  const bool in_pipeline = s.zero == 3 && s.pp > 1 && software_.shards_parameters;
  // Its gradients are whole until the last microbatch.
  if (in_pipeline) memory.gradients += bytes.gradient * (held + experts);
  // A pipeline of FSDP gathers its stage once.
  if (in_pipeline || (s.zero == 2 && software_.shards_parameters))
    memory.gathered = wide * (held + experts);
  else if (s.zero == 3)  // two layers, of which one is gathered while the other computes
    memory.gathered =
        wide *
        std::min(
            software_.most_gathered,
            2 * std::max(
                    {shape_.dense.divided * (dense > 0 ? 1 : 0) / s.tp,
                     sparse > 0 ? shape_.sparse.divided / s.tp + shape_.sparse.expert / s.ep : 0,
                     ends / s.tp / 2}));
  return memory;
}

DeviceMemory CostModel::memory(const MeshSettings& settings, std::int64_t stage) const {
  return memory_of(settings, stage_of(stage_layers(model_.layers, settings), stage),
                   communicators_of(settings));
}

DeviceMemory CostModel::memory(const MeshSettings& settings) const {
  DeviceMemory most;
  const double communicators = communicators_of(settings);
  for (const StageShape& stage : stages_of(settings))
    if (const DeviceMemory one = memory_of(settings, stage, communicators);
        one.total() > most.total() || most.weights == 0)
      most = one;
  return most;
}

Fit CostModel::judge(const DeviceMemory& memory) const {
  const double total = memory.total();
  if (total * (1 + margins_.formula_error) <= device_.memory) return Fit::fits;
  return total * (1 - margins_.formula_error) <= device_.memory ? Fit::tight : Fit::does_not_fit;
}

}  // namespace rankmesh::search
