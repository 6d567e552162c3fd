// SPDX-License-Identifier: BSD-3-Clause
// Compares what the ranks of examples/gpt send in a step, by their records, with what `meshinfo
// estimate` computes from the figures of the model.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include <rankmesh/spec/mesh_spec.hpp>
#include "place/model.hpp"

#include "../../examples/gpt/trainer.hpp"
#include "sent.hpp"

/// Whether ZeRO-3 gathers each weight once in a step: the weights of the layers of this stage are
/// in one bucket, which stays whole.
inline bool gathers_once(Model& stage) {
  std::int64_t elements = 0;
  stage.for_each_store([&](Store& store) {
    std::int64_t held = 0;
    for (const auto& part : store.parts())
      for (const Parameter& p : part) held += p.size();
    elements = std::max(elements, held);
  });
  return elements * std::int64_t{sizeof(Real)} <= (64 << 10);
}

/// Returns the figures of a model and its training on a mesh.
inline rankmesh::ModelFigures figures(const Config& config, const Groups& groups) {
  const std::int64_t h = config.width, norm_and_sum = 3 * h;  // gain and bias, and that of the sum
  rankmesh::ModelFigures model;
  model.layers = config.layers;
  model.hidden = model.kv_hidden = h;
  model.heads = config.heads;
  model.feed_forward = config.hidden();
  model.experts = config.experts;
  model.sequence = config.context;
  model.batch = config.microbatch;
  model.microbatches = Share{config, groups}.microbatches;
  model.virtual_stages = config.chunks;
  model.activation_bytes = model.parameter_bytes = model.gradient_bytes = sizeof(Real);
  model.dispatch_bytes = model.combine_bytes = sizeof(Real);
  model.optimizer = config.zero == 0   ? rankmesh::OptimizerSharing::replicated
                    : config.zero == 3 ? rankmesh::OptimizerSharing::fsdp
                                       : rankmesh::OptimizerSharing::distributed;
  model.gathers = 1;
  model.vocabulary = config.vocabulary;
  model.tied_embedding = true;
  const std::int64_t attention = 4 * h * h + 3 * h, mlp = 8 * h * h + 4 * h;  // that tp divides
  std::int64_t of_layer = norm_and_sum;                                       // that it does not
  if (config.experts == 0) {
    of_layer += norm_and_sum;
  } else {
    of_layer += 2 * h + config.experts * h;  // norm and router
    model.expert_layers = config.layers;
    model.experts_per_token = 2;
    model.expert_parameters = config.layers * config.experts * (mlp + h);
  }
  model.replicated_parameters = config.layers * of_layer + config.context * h + 2 * h;
  model.parameters = config.layers * (attention + (config.experts == 0 ? mlp : 0)) +
                     model.expert_parameters + model.replicated_parameters + config.vocabulary * h;
  return model;
}

/// The groups of complete(layout) with the names that `meshinfo estimate` knows.
inline rankmesh::MeshPlan plan_to_estimate(const std::string& layout) {
  const std::string all = complete(layout);
  return rankmesh::MeshSpec::parse(all.substr(0, all.find("data=dp*cp*ep")) +
                                   "dp_cp=dp*cp*ep,tp_dp_cp=dp*cp*ep*tp,edp=dp*cp*tp,embd=ends(pp)")
      .plan();
}

/// Lets all tokens choose the same experts, so the ranks send together as many rows as if the
/// experts were chosen evenly.
inline void choose_same_experts(Trainer& trainer, const Config& config) {
  trainer.model().for_each_store([&](Store& store) {
    store.fill([&](const Parameter& p, std::int64_t i) {
      const bool is_router = p.kind == Kind::replicated && p.outer == config.experts;
      return is_router ? 0 : initial(p, i);
    });
  });
}

/// The bytes of each link of this stage: to the neighbours in each direction; and for all chunks
/// but one from the last stage to the first one and back. Two stages do both with each other.
inline std::map<std::int64_t, std::int64_t> bytes_of_links(const Group& pp, std::int64_t bytes,
                                                           std::int64_t chunks) {
  const std::int64_t p = pp.size(), self = pp.rank_in_group().value();
  const std::int64_t around = bytes / chunks * (chunks - 1);
  std::map<std::int64_t, std::int64_t> links;
  links[(self + 1) % p] += pp.is_last() ? around : bytes;
  links[(self + p - 1) % p] += pp.is_first() ? around : bytes;
  std::erase_if(links, [](const auto& link) { return link.second == 0; });
  return links;
}

/// Trains a step in which the experts are chosen evenly, and returns what this rank sends in it.
inline std::map<std::string, Sent> sent_if_even(const OwnRecord& own, Config config, Groups& groups,
                                                const std::string& text) {
  config.rate = 0;  // so the router stays as it is
  Trainer trainer{config, groups, text};
  choose_same_experts(trainer, config);
  trainer.step();  // in the first step, buckets also compare what they contain
  return sent_in(own, [&] { trainer.step(); });
}

/// The bytes that all members of a group together send in a step of ZeRO only because their buckets
/// are padded to a multiple of 16 bytes for each member. There is one bucket per store.
inline std::int64_t sent_of_padding(Model& model, Kind kind, std::int64_t members) {
  constexpr std::int64_t aligned = 16 / sizeof(Real);
  std::int64_t padding = 0;
  model.for_each_store([&](Store& store) {
    std::int64_t held = 0;
    for (const auto& part : store.parts())
      for (const Parameter& p : part) held += p.kind == kind ? p.size() : 0;
    padding += (members * aligned - held % (members * aligned)) % (members * aligned);
  });
  return 2 * (members - 1) * padding * std::int64_t{sizeof(Real)};  // reduce_scatter, all_gather
}

/// Returns the number of families that have sent other numbers of bytes in a step than estimated.
/// Collective over the mesh.
inline int compare_with_estimate(const std::string& layout, const Config& config, Groups& groups,
                                 Model& stage, std::map<std::string, Sent> sent) {
  int failures = 0;
  const auto compare = [&](const std::string& what, std::int64_t bytes, std::int64_t expected) {
    if (bytes == expected) return;
    ++failures;
    std::printf("FAILED: %s, rank %d: bytes of %s: %ld instead of %ld\n", layout.c_str(),
                static_cast<int>(groups.mesh.rank().value()), what.c_str(),
                static_cast<long>(bytes), static_cast<long>(expected));
  };
  const rankmesh::MeshPlan plan = plan_to_estimate(layout);
  const std::map<std::string, std::pair<std::string, Kind>> replicas{
      {"dp_cp", {"data", Kind::divided}},
      {"tp_dp_cp", {"data_tp", Kind::replicated}},
      {"edp", {"expert_data", Kind::expert}}};
  for (const auto& volume : rankmesh::estimate(plan, figures(config, groups))) {
    const std::string& name = volume.traffic.name;
    const std::int64_t bytes = volume.traffic.bytes;
    const bool has_replicas = replicas.contains(name);
    const std::string in_record = has_replicas ? replicas.at(name).first : name;
    const Sent mine = sent[in_record];
    sent.erase(in_record);
    if (name == "pp") {
      const auto links = bytes_of_links(groups.pp, bytes, config.chunks);
      for (const auto& [to, of_link] : links)
        compare("pp to " + std::to_string(to), mine.to(to), of_link);
      for (const auto& [to, of_link] : mine.messages)
        if (!links.contains(to)) compare("pp to " + std::to_string(to), of_link, 0);
      continue;
    }
    const rankmesh::GroupFamily& family = plan.groups(name);
    const std::int64_t size = family.group_size(), ranks = family.group_count() * size;
    std::int64_t all = mine.gathers + mine.all_messages(), of_groups = mine.reductions;
    if (has_replicas && config.zero > 0)
      of_groups -= sent_of_padding(stage, replicas.at(name).second, size);
    groups.world.all_reduce(all);
    groups.world.all_reduce(of_groups);  // the sum of all members on each of them
    compare(name + ", mean of the ranks", (all + of_groups / size + ranks - 1) / ranks, bytes);
  }
  for (const auto& [name, more] : sent)
    compare(name, more.gathers + more.all_messages() + more.reductions, 0);
  return failures;
}
