// SPDX-License-Identifier: BSD-3-Clause
#include "search/rules.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace rankmesh::search {
namespace {

// "4 or 8": the nearest values below and above that are accepted.
template <class Accepts>
std::string nearest(std::int64_t value, std::int64_t most, Accepts accepts) {
  std::string text;
  for (std::int64_t below = std::min(value - 1, most); below >= 1; --below)
    if (accepts(below)) {
      text = fmt::format("{}", below);
      break;
    }
  for (std::int64_t above = value + 1; above <= most; ++above)
    if (accepts(above)) return fmt::format("{}{}{}", text, text.empty() ? "" : " or ", above);
  return text.empty() ? "no other value" : text;
}

std::string nearest_divisor(std::int64_t value, std::int64_t of) {
  return nearest(value, of, [of](std::int64_t v) { return of % v == 0; });
}

bool divides_heads(const RuleLimits& l, const MeshSettings& s) { return l.model.heads % s.tp == 0; }
bool suits_kv_heads(const RuleLimits& l, const MeshSettings& s) {
  const std::int64_t kv = l.shape.kv_heads;
  return l.model.latent_rank > 0 || kv % s.tp == 0 || s.tp % kv == 0;
}

// What the rules of both kinds of heads accept.
std::string nearest_tp(const RuleLimits& l, MeshSettings s) {
  return nearest(s.tp, l.model.heads, [&l, &s](std::int64_t v) {
    s.tp = static_cast<std::int32_t>(v);
    return divides_heads(l, s) && suits_kv_heads(l, s);
  });
}

std::string why_heads(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("tp={}: {} heads; {}", s.tp, l.model.heads, nearest_tp(l, s));
}
std::string why_kv_heads(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("tp={}: {} heads of keys; {}", s.tp, l.shape.kv_heads, nearest_tp(l, s));
}

bool divides_sequence(const RuleLimits& l, const MeshSettings& s) {
  return s.cp == 1 || l.model.sequence % (std::int64_t{2} * s.cp) == 0;
}
std::string why_sequence(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("cp={}: {} tokens, 2 parts per rank; {}", s.cp, l.model.sequence,
                     nearest_divisor(s.cp, l.model.sequence / 2));
}

bool has_tensor(const RuleLimits& l, const MeshSettings& s) {
  return !s.sequence_parallel || (s.tp > 1 && l.model.sequence / s.cp % s.tp == 0);
}
std::string why_tensor(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("tp={}: sequence parallelism of {} tokens; {}", s.tp, l.model.sequence / s.cp,
                     nearest_divisor(s.tp, l.model.sequence / s.cp));
}

bool has_layers(const RuleLimits& l, const MeshSettings& s) { return s.pp <= l.model.layers; }
std::string why_layers(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("pp={}: {} layers; {} at most", s.pp, l.model.layers, l.model.layers);
}

bool has_devices(const RuleLimits& l, const MeshSettings& s) { return s.ranks() <= l.devices; }
std::string why_devices(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("{} takes {} devices; there are {}", s.mesh(), s.ranks(), l.devices);
}

bool divides_batch(const RuleLimits& l, const MeshSettings& s) { return l.batch % s.dp == 0; }
std::string why_batch(const RuleLimits& l, const MeshSettings& s) {
  const std::int64_t most = l.devices / (std::int64_t{1} * s.pp * s.cp * s.tp);
  return fmt::format(
      "dp={}: {} sequences per step; {}", s.dp, l.batch,
      nearest(s.dp, std::min(l.batch, most), [&l](std::int64_t v) { return l.batch % v == 0; }));
}

bool divides_experts(const RuleLimits& l, const MeshSettings& s) {
  return s.ep == 1 || (l.model.experts > 0 && l.model.experts % s.ep == 0);
}
std::string why_experts(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("ep={}: {} experts; {}", s.ep, l.model.experts,
                     l.model.experts == 0 ? "1" : nearest_divisor(s.ep, l.model.experts));
}

bool divides_ranks(const RuleLimits&, const MeshSettings& s) {
  return std::int64_t{1} * s.dp * s.cp * s.tp % s.ep == 0;
}
std::string why_ranks(const RuleLimits&, const MeshSettings& s) {
  const std::int64_t ranks = std::int64_t{1} * s.dp * s.cp * s.tp;
  return fmt::format("ep={}: {} ranks per stage (dp cp tp); {}", s.ep, ranks,
                     nearest_divisor(s.ep, ranks));
}

bool divides_share(const RuleLimits& l, const MeshSettings& s) {
  return l.batch / s.dp % s.micro_batch == 0;
}
std::string why_share(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("microbatches of {}: {} sequences per dp rank; {}", s.micro_batch,
                     l.batch / s.dp, nearest_divisor(s.micro_batch, l.batch / s.dp));
}

bool interleaves(const RuleLimits&, const MeshSettings& s) {
  return s.virtual_stages == 1 || (s.pp > 1 && s.microbatches % s.pp == 0);
}
std::string why_interleaves(const RuleLimits&, const MeshSettings& s) {
  if (s.pp == 1)
    return fmt::format("vpp={} pp=1: virtual stages need a pipeline; 1", s.virtual_stages);
  return fmt::format("vpp={} pp={}: {} microbatches; a multiple of {}", s.virtual_stages, s.pp,
                     s.microbatches, s.pp);
}

// Chunks that are equal, or equal if the embedding and the loss count as layers, or none of which
// is empty then.
bool fills_chunks(const RuleLimits& l, const MeshSettings& s) {
  const std::int64_t chunks = std::int64_t{1} * s.pp * s.virtual_stages;
  if (s.stages == StageKind::even) return l.model.layers % chunks == 0;
  const std::int64_t slots = l.model.layers + 2;
  return chunks > 1 && (s.stages == StageKind::counted ? slots % chunks == 0 : slots > chunks);
}
std::string why_chunks(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("pp={} vpp={}, {} stages: {} layers; {} chunks", s.pp, s.virtual_stages,
                     to_string(s.stages), l.model.layers,
                     nearest_divisor(std::int64_t{1} * s.pp * s.virtual_stages, l.model.layers));
}

// ZeRO by the training program.
bool shares(const RuleLimits& l, const MeshSettings& s) {
  if (l.software == nullptr || s.dp * s.cp == 1) return true;
  if (l.software->shards_parameters) return s.zero >= 2;
  return s.zero < 2 || s.pp == 1;
}
std::string why_shares(const RuleLimits& l, const MeshSettings& s) {
  return fmt::format("z={}: {} with pp={}; {}", s.zero, l.software->name, s.pp,
                     l.software->shards_parameters ? "2 or 3" : "0 or 1");
}

constexpr std::array<Rule, 13> all_rules{{
    {"heads", RuleChoice::tp, "Megatron-Core transformer_config.py; vLLM config: heads % tp",
     divides_heads, why_heads},
    {"kv-heads", RuleChoice::tp,
     "Megatron-Core transformer_config.py; vLLM: a multiple or a divisor", suits_kv_heads,
     why_kv_heads},
    {"sequence", RuleChoice::cp, "Megatron-LM arguments.py: sequence % (2 cp)", divides_sequence,
     why_sequence},
    {"layers", RuleChoice::pp, "Megatron-Core transformer_config.py; vLLM: pp <= layers",
     has_layers, why_layers},
    {"devices", RuleChoice::dp, "Megatron-Core parallel_state.py: world % (tp pp cp)", has_devices,
     why_devices},
    {"batch", RuleChoice::dp, "Megatron-Core num_microbatches_calculator.py: batch % dp",
     divides_batch, why_batch},
    {"experts", RuleChoice::ep, "Megatron-LM arguments.py; vLLM: experts % ep", divides_experts,
     why_experts},
    {"expert-ranks", RuleChoice::ep, "Megatron-Core parallel_state.py: world % (ep pp)",
     divides_ranks, why_ranks},
    {"micro-batch", RuleChoice::micro_batch,
     "Megatron-Core num_microbatches_calculator.py: batch % (micro dp)", divides_share, why_share},
    {"sequence-parallel", RuleChoice::schedule, "Megatron-LM arguments.py: tp > 1, sequence % tp",
     has_tensor, why_tensor},
    {"interleaving", RuleChoice::schedule, "Megatron-Core schedules.py: microbatches % pp",
     interleaves, why_interleaves},
    {"chunks", RuleChoice::schedule, "Megatron-Core transformer_config.py: layers % (pp vpp)",
     fills_chunks, why_chunks},
    {"zero", RuleChoice::sharing,
     "DeepSpeed pipe/engine.py; Megatron-Core: FSDP without pp; torch FSDP: 2 or 3", shares,
     why_shares},
}};

}  // namespace

std::span<const Rule> rules() { return all_rules; }

const Rule* refusing(const RuleLimits& limits, const MeshSettings& settings, RuleChoice choice) {
  for (const Rule& rule : all_rules)
    if (rule.choice == choice && !rule.accepts(limits, settings)) return &rule;
  return nullptr;
}

const Rule* first_refusing(const RuleLimits& limits, const MeshSettings& settings,
                           RuleChoice last) {
  for (const Rule& rule : all_rules)
    if (rule.choice <= last && !rule.accepts(limits, settings)) return &rule;
  return nullptr;
}

}  // namespace rankmesh::search
