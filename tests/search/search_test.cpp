// SPDX-License-Identifier: BSD-3-Clause
// The formulas, the rules and the search.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rankmesh/base/error.hpp"
#include "rankmesh/place/arrange.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "search/groups.hpp"
#include "support/checks.hpp"

using rankmesh::LevelKind;
using rankmesh::Machine;
using rankmesh::ModelFigures;
using namespace rankmesh::search;

namespace {

// GPT-3 of 175 billion parameters.
ModelFigures gpt3() {
  ModelFigures m;
  m.layers = 96, m.hidden = m.kv_hidden = 12288, m.heads = 96, m.feed_forward = 4 * 12288;
  m.vocabulary = 51200, m.sequence = 2048, m.dropout = true, m.tied_embedding = true;
  return m;
}

ModelFigures small(std::int64_t layers, std::int64_t heads, std::int64_t experts = 0) {
  ModelFigures m;
  m.layers = layers, m.hidden = m.kv_hidden = heads * 64, m.heads = heads;
  m.kv_heads = std::max<std::int64_t>(1, heads / 2);
  m.feed_forward = 4 * m.hidden, m.vocabulary = 32000, m.sequence = 1024, m.gated = true;
  if (experts > 0) m.experts = experts, m.experts_per_token = 2, m.expert_layers = layers;
  return m;
}

Machine nodes_of_8(std::int64_t slots) {
  return Machine{slots, {{"node", LevelKind::node, std::min<std::int64_t>(8, slots)}}};
}

CostModel cost_of(const ModelFigures& model, std::int64_t devices, Software program = {}) {
  return {model, device_figures("H100"), nodes_of_8(devices), program, {}};
}

Software old_program() {
  Software program = software("megatron", "fp16");
  program.has_flash_attention = program.overlaps = false;
  return program;
}

std::string reason_of(const ModelFigures& model, const MeshSettings& s, std::int64_t batch = 64) {
  const ModelShape shape{model};
  const RuleLimits limits{model, shape, batch, 4096};
  const Rule* rule = first_refusing(limits, s);
  return rule == nullptr ? "" : rule->why(limits, s);
}

}  // namespace

TEST_CASE("activations are those of Korthikanti et al. (2205.05198, table 2)") {
  const double sbh = 2048.0 * 12288, a = 96, s = 2048, h = 12288;
  const auto per_layer = [&](const MeshSettings& settings) {
    // The embedding's mask is not part of a layer; nor are the layers in flight.
    const double masks = sbh / (settings.sequence_parallel ? settings.tp : 1);
    const CostModel cost = cost_of(gpt3(), 8, old_program());
    const DeviceMemory memory = cost.memory(settings);
    return (memory.activations + memory.recomputed - masks) / 96 / sbh;
  };
  MeshSettings settings;
  CHECK(per_layer(settings) == doctest::Approx(34 + 5 * a * s / h));
  settings.tp = 8;
  CHECK(per_layer(settings) == doctest::Approx(10 + 24.0 / 8 + 5 * a * s / (h * 8)));
  settings.sequence_parallel = true;
  CHECK(per_layer(settings) == doctest::Approx((34 + 5 * a * s / h) / 8));
  settings.recompute = Recompute::selective;  // the scores of one layer come back
  CHECK(per_layer(settings) == doctest::Approx((34 + 5 * a * s / h / 96) / 8));
  settings.recompute = Recompute::full;
  CHECK(per_layer(settings) == doctest::Approx((2 + (32 + 5 * a * s / h) / 96) / 8));
}

TEST_CASE("the states of parameters are divided as ZeRO says") {
  const ModelFigures model = gpt3();
  const ModelShape shape{model};
  CHECK(shape.all_parameters == doctest::Approx(174.6e9).epsilon(0.001));
  const auto states = [&](int zero, std::int32_t dp, const Software& program) {
    MeshSettings s{.dp = dp, .zero = static_cast<std::int8_t>(zero)};
    const auto memory = cost_of(model, 64, program).memory(s);
    return (memory.weights + memory.gradients + memory.optimizer) / shape.all_parameters;
  };
  const Software bf16 = software("megatron", "bf16"), fp16 = software("megatron", "fp16");
  CHECK(states(0, 64, bf16) == doctest::Approx(18));
  CHECK(states(1, 64, bf16) == doctest::Approx(6 + 12.0 / 64));
  CHECK(states(2, 64, bf16) == doctest::Approx(2 + 16.0 / 64));
  CHECK(states(3, 64, bf16) == doctest::Approx(18.0 / 64));
  CHECK(states(0, 64, fp16) == doctest::Approx(20));
  CHECK(states(1, 64, fp16) == doctest::Approx(4 + 16.0 / 64));
}

TEST_CASE("a stage holds the microbatches of its schedule") {
  const auto held = [](std::int32_t v, std::int32_t m) {
    MeshSettings s{.pp = 8, .virtual_stages = v, .microbatches = m};
    ModelFigures model = gpt3();
    model.dropout = false;
    model.vocabulary = 1;
    const auto memory = cost_of(model, 8).memory(s);
    if (m > s.pp) CHECK(memory.stage == 0);
    return memory.activations / 12;
  };
  const double one = held(1, 1);
  CHECK(held(1, 64) == doctest::Approx(8 * one));  // p
  CHECK(held(3, 64) ==
        doctest::Approx((2 * 7 + 2 * 8 + 1) / 3.0 * one));  // Megatron-LM schedules.py
  CHECK(held(1, 4) == doctest::Approx(4 * one));
}

TEST_CASE("the bubble is (p - 1) / (v m) of the ideal time") {
  MeshSettings s{.pp = 8, .microbatches = 64};
  ModelFigures model = gpt3();
  model.tied_embedding = false;
  const CostModel cost = cost_of(model, 8);
  const auto plain = cost.time(s);
  const double work = plain.products + plain.memory;
  CHECK(plain.bubble / work == doctest::Approx(7.0 / 64));
  s.virtual_stages = 3;
  CHECK(cost.time(s).bubble / work == doctest::Approx(7.0 / 64 / 3));
}

TEST_CASE("groups that begin inside a node, and what leaves their nodes") {
  ModelFigures model = small(24, 40, 40);
  const CostModel cost = cost_of(model, 40);
  // Groups of 5 straddle nodes of 8, groups of 4 do not.
  const MeshSettings four{.dp = 10, .tp = 4, .microbatches = 8},
      five{.dp = 8, .tp = 5, .microbatches = 8};
  CHECK(cost.time(five).tp > 2 * cost.time(four).tp);
  // Alone on the node, a group of 5 begins at its first slot.
  CHECK(cost_of(model, 5).time({.tp = 5, .microbatches = 8}).tp < 2 * cost.time(four).tp);
  // Groups of 10 lie on two nodes, and their messages cross the network.
  const MeshSettings eight{.dp = 40, .ep = 8, .microbatches = 8},
      ten{.dp = 40, .ep = 10, .microbatches = 8};
  CHECK(cost.time(ten).ep > 3 * cost.time(eight).ep);
  // In a pipeline of stages of four ranks, every second link leaves its node.
  const double near = cost_of(model, 8).time({.pp = 2, .tp = 4, .microbatches = 8}).pp;
  const double far = cost_of(model, 32).time({.pp = 8, .tp = 4, .microbatches = 8}).pp;
  CHECK(far > 4 * 3 * near);  // of four times as many links
  // Seven ranks fit into a node, nine do not.
  const auto pp = [](int ranks) {
    return cost_of(small(63, 64), ranks).time({.pp = ranks, .microbatches = 8}).pp;
  };
  CHECK(pp(9) > 3 * pp(7));
  // On 40 devices, the only group of 5 begins at the first slot.
  CHECK(cost.time({.tp = 5, .microbatches = 8}).tp < 2 * cost.time(four).tp);
}

TEST_CASE("a domain of several nodes is as fast as a node") {
  const ModelFigures model = small(24, 64);
  const auto time = [&](std::vector<rankmesh::MachineLevel> levels) {
    const Machine machine{64, std::move(levels)};
    return CostModel{model, device_figures("B200"), machine, {}, {}}
        .time({.dp = 8, .tp = 8, .microbatches = 8})
        .tp;
  };
  const double node = time({{"node", LevelKind::node, 8}});
  CHECK(time({{"nvlink", LevelKind::domain, 32}, {"node", LevelKind::node, 4}}) ==
        doctest::Approx(node));
  CHECK(time({{"node", LevelKind::node, 4}}) > 2 * node);
}

TEST_CASE("rules name the nearest values that work") {
  const ModelFigures model = gpt3();
  CHECK(reason_of(model, {.tp = 7}) == "tp=7: 96 heads; 6 or 8");
  CHECK(reason_of(small(4, 8), {.tp = 8}) == "");  // 8 is a multiple of 4 heads of keys
  CHECK(reason_of(small(4, 12), {.tp = 4}) == "tp=4: 6 heads of keys; 3 or 6");
  CHECK(reason_of(small(4, 12), {.tp = 5}) == "tp=5: 12 heads; 3 or 6");  // not 4
  CHECK(reason_of(model, {.cp = 3}) == "cp=3: 2048 tokens, 2 parts per rank; 2 or 4");
  CHECK(reason_of(model, {.dp = 3}) == "dp=3: 64 sequences per step; 2 or 4");
  CHECK(reason_of(model, {.dp = 100, .tp = 32}, 192) == "dp=100: 192 sequences per step; 96");
  CHECK(reason_of(model, {.virtual_stages = 2}) == "vpp=2 pp=1: virtual stages need a pipeline; 1");
  CHECK(reason_of(model, {.pp = 97}) == "pp=97: 96 layers; 96 at most");
  CHECK(reason_of(model, {.ep = 2}) == "ep=2: 0 experts; 1");
  CHECK(reason_of(small(4, 8, 8), {.dp = 8, .ep = 3}) == "ep=3: 8 experts; 2 or 4");
  CHECK(reason_of(small(4, 8, 8), {.dp = 2, .ep = 4}) == "ep=4: 2 ranks per stage (dp cp tp); 2");
  CHECK(reason_of(model, {.dp = 64, .micro_batch = 2}) ==
        "microbatches of 2: 1 sequences per dp rank; 1");
  CHECK(reason_of(model, {.pp = 4, .virtual_stages = 2, .microbatches = 6}) ==
        "vpp=2 pp=4: 6 microbatches; a multiple of 4");
  CHECK(reason_of(model, {.pp = 7}) == "pp=7 vpp=1, even stages: 96 layers; 6 or 8 chunks");
  CHECK(reason_of(model, {.pp = 7, .stages = StageKind::counted}) == "");  // 98 = 7 x 14
  CHECK(reason_of(model, {.pp = 9, .stages = StageKind::uneven}) == "");
  CHECK(reason_of(model, {.dp = 8192}, 8192).ends_with("there are 4096"));
  const ModelShape shape{model};
  const Software megatron = software("megatron", "bf16"), fsdp = software("fsdp", "bf16");
  const MeshSettings sharded{.pp = 2, .dp = 2, .zero = 3}, plain{.pp = 2, .dp = 2};
  const auto is_refused = [&](const MeshSettings& s, const Software& program) {
    return refusing({model, shape, 64, 64, &program}, s, RuleChoice::sharing) != nullptr;
  };
  CHECK((is_refused(sharded, megatron) && !is_refused(plain, megatron)));
  CHECK((is_refused(plain, fsdp) && !is_refused(sharded, fsdp)));
}

TEST_CASE("stages: the embedding and the loss count as layers, and ends have the fewest") {
  CHECK(chunk_layers(126, {.pp = 16, .stages = StageKind::counted}) ==
        std::vector<std::int64_t>{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  CHECK(chunk_layers(61, {.pp = 16, .stages = StageKind::uneven}) ==
        std::vector<std::int64_t>{2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3});
  const auto ends =
      chunk_layers(126, {.pp = 16, .virtual_stages = 8, .stages = StageKind::counted});
  CHECK(ends.size() == 128);
  CHECK((ends.front() == 0 && ends.back() == 0 && ends[1] == 1));
}

TEST_CASE("a search finds what a search of all settings finds") {
  struct Case {
    ModelFigures model;
    std::int64_t devices, batch;
  };
  for (const auto& [model, devices, batch] :
       {Case{small(4, 8), 8, 16}, Case{small(6, 4), 12, 24}, Case{small(8, 8, 8), 16, 16},
        Case{small(5, 6), 6, 12}, Case{small(12, 16), 16, 8}}) {
    for (const double memory : {80e9, 12e9}) {
      DeviceFigures device = device_figures("H100");
      device.memory = memory;
      const CostModel cost{model, device, nodes_of_8(devices), Software{}, {}};
      const auto found = rankmesh::search::search(cost, {.devices = devices, .batch = batch});
      const ModelShape shape{model};
      const RuleLimits limits{cost.model(), shape, batch, devices, &cost.software()};
      double best = std::numeric_limits<double>::infinity();
      std::int64_t count = 0;
      const auto judge = [&](const MeshSettings& s) {
        if (first_refusing(limits, s) != nullptr) return;
        ++count;
        if (cost.judge(cost.memory(s)) != Fit::does_not_fit)
          best = std::min<double>(best, static_cast<float>(cost.time(s).total()));
      };
      const auto n = static_cast<std::int32_t>(devices);
      for (std::int32_t pp = 1; pp <= n; ++pp)
        for (std::int32_t cp = 1; cp * pp <= n; ++cp)
          for (std::int32_t tp = 1; tp * cp * pp <= n; ++tp)
            for (std::int32_t dp = 1; dp * tp * cp * pp <= n; ++dp)
              for (std::int32_t ep = 1; ep <= 8; ++ep)
                for (std::int32_t b = 1; b * dp <= batch; ++b)
                  for (std::int32_t v = 1; v <= 12; ++v)
                    for (int rest = 0; rest < 4 * 2 * 3 * 3; ++rest) {
                      MeshSettings s{.pp = pp,
                                     .dp = dp,
                                     .cp = cp,
                                     .tp = tp,
                                     .ep = ep,
                                     .virtual_stages = v,
                                     .micro_batch = b};
                      if (batch % (dp * b) != 0) continue;
                      s.microbatches = static_cast<std::int32_t>(batch / dp / b);
                      s.zero = static_cast<std::int8_t>(rest % 4);
                      s.sequence_parallel = rest / 4 % 2 == 1;
                      s.recompute = static_cast<Recompute>(rest / 8 % 3);
                      s.stages = static_cast<StageKind>(rest / 24);
                      judge(s);
                    }
      REQUIRE(count > 100);
      REQUIRE(!found.candidates.empty() == std::isfinite(best));
      if (std::isfinite(best)) CHECK(found.candidates.front().seconds <= doctest::Approx(best));
    }
  }
}

TEST_CASE("the order of the dimensions is one that plan does not improve") {
  for (const char* mesh : {"pp=4,dp=4,tp=4", "pp=2,dp=4,cp=2,tp=2", "pp=1,dp=8,tp=4"}) {
    const auto plan = rankmesh::MeshSpec::parse(mesh).plan();
    const Machine machine = nodes_of_8(plan.world_size());
    ModelFigures model = gpt3();
    model.parameters = 175'000'000'000;
    model.microbatches = 64;
    std::vector<rankmesh::FamilyTraffic> traffic;
    for (const auto& volume : estimate(plan, model)) traffic.push_back(volume.traffic);
    const auto found = arrange(plan, machine, traffic);
    CHECK(found.best.bytes == found.today.bytes);
  }
}

TEST_CASE("groups have times that differ by less than 10 %, the least memory first") {
  std::vector<Candidate> candidates{
      {{.pp = 1}, 1.0F, 9, Fit::fits},  {{.pp = 2}, 1.05F, 5, Fit::fits},
      {{.pp = 2}, 1.06F, 4, Fit::fits}, {{.pp = 4}, 1.09F, 1, Fit::tight},
      {{.pp = 1}, 1.15F, 1, Fit::fits}, {{.pp = 8}, 1.25F, 1, Fit::fits}};
  const auto best = grouped(candidates, 10);
  REQUIRE(best.size() == 4);
  CHECK((best[0].candidate.settings.pp == 2 && best[0].candidate.bytes == 4));
  CHECK(best[1].candidate.settings.pp == 1);
  CHECK((best[2].candidate.settings.pp == 4 && best[2].group == 1));
  CHECK((best[3].candidate.settings.pp == 8 && best[3].group == 2));
}

TEST_CASE("calibration reproduces what was measured") {
  CostModel cost = cost_of(gpt3(), 512);
  const MeshSettings s{.pp = 8, .dp = 8, .tp = 8, .microbatches = 64, .sequence_parallel = true};
  const Measured measured{cost.time(s).total() * 1.3, cost.memory(s).total() + 5e9};
  cost.set_margins(calibrate(cost, s, measured));
  CHECK(cost.time(s).total() == doctest::Approx(*measured.seconds));
  CHECK(cost.memory(s).total() == doctest::Approx(*measured.bytes));
  CHECK_THROWS_AS((void)calibrate(cost, s, {1e-6, {}}), rankmesh::UsageError);
  const DeviceMemory memory = cost_of(gpt3(), 512).memory(s);
  const double states = memory.weights + memory.gradients + memory.optimizer;
  CHECK(calibrate(cost, s, {{}, states}).reserve < 0);
  CHECK_THROWS_WITH_AS((void)calibrate(cost, s, {{}, states - 1e9}),
                       doctest::Contains("less than the"), rankmesh::UsageError);
}

TEST_CASE("orders that were measured") {
  // BLOOM (bigscience, chronicles-prequel.md), 384 A100 in fp16 or bf16 with full recomputation. 70
  // layers: TP4 PP12 at 153.7 TFLOP/s, TP8 PP12 at 128.9. 72 layers, TP8: PP1 ran out of memory,
  // PP2 did not.
  ModelFigures bloom = gpt3();
  bloom.hidden = bloom.kv_hidden = 14336, bloom.heads = 64, bloom.feed_forward = 4 * 14336;
  bloom.vocabulary = 250880;
  const auto bloom_cost = [&](std::int64_t layers, const char* precision) {
    bloom.layers = layers;
    Software program = software("deepspeed", precision);
    program.has_flash_attention = false;
    return CostModel{bloom, device_figures("A100"), nodes_of_8(384), program, {}};
  };
  const MeshSettings tp4{.pp = 12,
                         .dp = 8,
                         .tp = 4,
                         .micro_batch = 2,
                         .microbatches = 128,
                         .recompute = Recompute::full,
                         .stages = StageKind::counted};
  MeshSettings tp8 = tp4;
  tp8.dp = 4, tp8.tp = 8, tp8.microbatches = 256;
  const CostModel of_70 = bloom_cost(70, "bf16");
  CHECK(of_70.time(tp4).total() < of_70.time(tp8).total());
  const CostModel of_72 = bloom_cost(72, "fp16");
  MeshSettings one_stage{.dp = 48, .tp = 8, .microbatches = 42, .recompute = Recompute::full};
  MeshSettings two_stages = one_stage;
  two_stages.pp = 2, two_stages.dp = 24, two_stages.microbatches = 84;
  CHECK(of_72.judge(of_72.memory(one_stage)) == Fit::does_not_fit);
  CHECK(of_72.judge(of_72.memory(two_stages)) != Fit::does_not_fit);

  // Llama 3 70B, 32 devices, fine-tuning: TP4 PP4, then TP4 PP8, then TP8 PP4 (Megatron-Bridge).
  ModelFigures model;
  model.layers = 80, model.hidden = 8192, model.heads = 64, model.kv_heads = 8;
  model.kv_hidden = 1024, model.feed_forward = 28672, model.gated = true;
  model.vocabulary = 128256, model.sequence = 4096;
  const CostModel cost = cost_of(model, 32, software("megatron", "fp8"));
  const auto seconds = [&](std::int32_t tp, std::int32_t pp) {
    const std::int32_t dp = 32 / tp / pp;
    return cost
        .time({.pp = pp,
               .dp = dp,
               .tp = tp,
               .virtual_stages = 5,
               .microbatches = 32 / dp,
               .sequence_parallel = true})
        .total();
  };
  CHECK(seconds(4, 4) < seconds(4, 8));
  CHECK(seconds(4, 8) < seconds(8, 4));
}

TEST_CASE("if nothing fits, a search knows the least number of devices") {
  ModelFigures model = gpt3();
  const CostModel cost = cost_of(model, 8);
  const SearchOptions options{.devices = 8, .batch = 64};
  const auto found = rankmesh::search::search(cost, options);
  CHECK(found.candidates.empty());
  REQUIRE(found.smallest);
  const auto enough = least_devices(cost, options);
  REQUIRE(enough);
  CHECK(*enough > 8);
  CHECK(!rankmesh::search::search(cost, {.devices = *enough, .batch = 64}).candidates.empty());
}
