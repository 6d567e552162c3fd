// SPDX-License-Identifier: BSD-3-Clause
// Compares the memory of each rank of examples/gpt with what `meshinfo search` predicts from the
// figures of the model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "estimated.hpp"
#include "search/cost.hpp"

/// The bytes of the whole weights or gradients that ZeRO has at a time where it divides them:
/// twice the largest bucket of each division (docs/sharded.md). A part is a bucket if it has 64
/// KiB.
inline double whole_buckets(Model& stage) {
  double all = 0;
  stage.for_each_store([&](Store& store) {
    for (int kind = 0; kind < kinds; ++kind) {
      std::int64_t sum = 0, most = 0;
      for (const auto& part : store.parts()) {
        std::int64_t of_part = 0;
        for (const Parameter& p : part)
          if (p.kind == static_cast<Kind>(kind)) of_part += p.size();
        sum += of_part;
        most = std::max(most, of_part);
      }
      const std::int64_t bucket = std::int64_t{(64 << 10) / sizeof(Real)};
      all += static_cast<double>(std::min(sum, 2 * std::max(most, bucket)));
    }
  });
  return all * sizeof(Real);
}

/// What examples/gpt does as a training program. It computes norms and activation functions again.
inline rankmesh::search::Software gpt_program() {
  rankmesh::search::Software program;
  program.name = "gpt";
  program.states = {sizeof(Real), sizeof(Real), 2 * sizeof(Real)};
  program.activation_bytes = sizeof(Real);
  program.logit_bytes = sizeof(Real);
  program.accumulates = true;
  program.keeping = {.has_results = true, .repeats_norms = true};
  return program;
}

/// Trains a step of a wider model, in which biases and the statistics of norms and of attention are
/// as small a part as in real models, and returns the largest relative difference of the memory of
/// any rank: of the weights, the gradients, the state of the optimizer, and what is kept for
/// backward passes. A pipeline has several microbatches, and without one a step has one, so that
/// ZeRO-2 divides the gradients. All tokens choose the same experts, so what is kept is the mean
/// over `ep`.
/// Collective over the mesh.
inline double memory_difference(Config config, Groups& groups, const std::string& text) {
  namespace search = rankmesh::search;
  config.width = 96, config.heads = 6, config.context = 12, config.microbatch = 1;
  config.batch =
      groups.dp.size() * groups.ep.size() * (groups.pp.size() > 1 ? 2 * groups.pp.size() : 1);
  Trainer trainer{config, groups, text};
  if (config.experts > 0) choose_same_experts(trainer, config);
  trainer.step();

  const auto size = [](const Group& group) { return static_cast<std::int32_t>(group.size()); };
  const search::MeshSettings settings{
      .pp = size(groups.pp),
      .dp = size(groups.dp) * size(groups.ep),
      .cp = size(groups.cp),
      .tp = size(groups.tp),
      .ep = size(groups.ep),
      .virtual_stages = static_cast<std::int32_t>(config.chunks),
      .micro_batch = static_cast<std::int32_t>(config.microbatch),
      .microbatches = static_cast<std::int32_t>(Share{config, groups}.microbatches),
      .zero = static_cast<std::int8_t>(config.zero),
      .sequence_parallel = groups.tp.size() > 1,
      .recompute = search::Recompute::selective};
  const rankmesh::Machine machine{settings.ranks(),
                                  {{"node", rankmesh::LevelKind::node, settings.ranks()}}};
  const search::CostModel cost{
      figures(config, groups), search::device_figures("H100"), machine, gpt_program(), {}};
  const search::DeviceMemory predicted = cost.memory(settings, groups.pp.rank_in_group().value());

  AllocatedBytes states;
  trainer.model().for_each_store([&](Store& store) {
    const AllocatedBytes of = store.bytes();
    states = {states.weights + of.weights, states.gradients + of.gradients,
              states.optimizer + of.optimizer};
  });
  double kept = static_cast<double>(trainer.most_kept());
  groups.ep.all_reduce(kept);
  double most = 0;
  const auto compare = [&](const char* what, double bytes, double expected) {
    const double difference = std::abs(expected / bytes - 1);
    most = std::max(most, difference);
    if (!(difference <= 0.05))
      std::printf("FAILED: rank %d: %.0f bytes of %s, and %.0f were predicted\n",
                  static_cast<int>(groups.mesh.rank().value()), bytes, what, expected);
  };
  const double whole = whole_buckets(trainer.model());
  compare("weights", static_cast<double>(states.weights),
          predicted.weights + (config.zero == 3 ? whole : 0));
  const bool divides_gradients = config.zero >= 2 && settings.microbatches == 1;
  compare("gradients", static_cast<double>(states.gradients),
          predicted.gradients + (divides_gradients ? whole : 0));
  compare("the optimizer", static_cast<double>(states.optimizer), predicted.optimizer);
  compare("activations", kept / static_cast<double>(groups.ep.size()),
          predicted.activations + predicted.logits);
  groups.world.all_reduce(most, ReduceOp::max);
  return most;
}
