// SPDX-License-Identifier: BSD-3-Clause
// The volumes of training steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>

#include "place/model.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/place/arrange.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using rankmesh::Arrangements;
using rankmesh::FamilyTraffic;
using rankmesh::FamilyVolume;
using rankmesh::LevelKind;
using rankmesh::Machine;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;
using rankmesh::ModelFigures;
using rankmesh::OptimizerSharing;
using rankmesh::Pattern;
using rankmesh::SpecError;
using rankmesh::UsageError;

namespace {

ModelFigures example(const std::string& name) {
  const std::string path = std::string{RANKMESH_EXAMPLE_MODELS} + "/" + name + ".toml";
  std::ifstream file{path};
  ModelFigures model =
      ModelFigures::parse_toml(std::string{std::istreambuf_iterator<char>{file}, {}}, path);
  model.vocabulary = 0;  // a case of its own tests the embedding and the loss
  model.tied_embedding = false;
  return model;
}

std::int64_t bytes_of(const char* mesh, const ModelFigures& model, std::string_view name) {
  const auto volumes = estimate(MeshSpec::parse(mesh).plan(), model);
  const auto found = std::ranges::find(
      volumes, name, [](const FamilyVolume& volume) { return volume.traffic.name; });
  return found == volumes.end() ? -1 : found->traffic.bytes;
}

// The figures in GB, rounded to one decimal.
std::int64_t tenths(std::int64_t bytes) { return (bytes + 50'000'000) / 100'000'000; }

}  // namespace

TEST_CASE("Llama 3 405B with tp=8, pp=16, dp=128") {
  ModelFigures model = example("llama3_405b");
  const char* mesh = "pp=16,dp=128,tp=8";
  // 16 microbatches, 7.875 layers per stage, 10 x 8192 x 16384 elements of 2 bytes, 7/8 of them.
  CHECK(bytes_of(mesh, model, "tp") == 295'950'090'240);
  model.sequence_parallel = false;
  CHECK(bytes_of(mesh, model, "tp") == 236'760'072'192);
  CHECK(tenths(bytes_of(mesh, model, "pp")) == 43);
  model.full_recomputation = true;
  CHECK(bytes_of(mesh, model, "tp") == 236'760'072'192 / 8 * 12);
  model = example("llama3_405b");
  CHECK(bytes_of(mesh, model, "pp") == 536'870'912);  // each direction
  CHECK(tenths(bytes_of(mesh, model, "dp")) == 188);  // 12.6 and 6.3, less 1/128
  model.optimizer = OptimizerSharing::replicated;
  CHECK(tenths(bytes_of(mesh, model, "dp")) == 251);
  model.optimizer = OptimizerSharing::fsdp;
  CHECK(tenths(bytes_of(mesh, model, "dp")) == 251);
}

TEST_CASE("volumes vanish with groups of one rank, and gradients cross dp and cp") {
  const ModelFigures model = example("gpt2");
  CHECK(estimate(MeshSpec::parse("tp=1,pp=1,dp=1").plan(), model).empty());
  CHECK(bytes_of("dp=4", model, "dp") == 2 * 4 * model.parameters * 3 / 4);
  CHECK(bytes_of("dp=2,cp=2;dp_cp=dp*cp", model, "dp_cp") == 2 * 4 * model.parameters * 3 / 4);
  CHECK(bytes_of("dp=2,cp=2;dp_cp=dp*cp", model, "dp") == -1);
  // 3 passes, 8 microbatches, 48 layers, keys and values of 512 tokens, sent once.
  CHECK(bytes_of("dp=2,cp=2", model, "cp") == 3LL * 8 * 48 * 2 * 512 * 1600 * 2);
}

TEST_CASE("replicas beside fsdp add up the gradients of their shards") {
  ModelFigures model = example("gpt2");
  model.optimizer = OptimizerSharing::fsdp;
  CHECK(bytes_of("dp=2,fsdp=4", model, "fsdp") == (4 + 2 * 2) * model.parameters * 3 / 4);
  CHECK(bytes_of("dp=2,fsdp=4", model, "dp") == model.parameters);  // 2 x 4 bytes, / 4 shards / 2
  CHECK(bytes_of("dp_replicate=2,fsdp=4", model, "dp_replicate") == model.parameters);
  CHECK(bytes_of("fsdp=4", model, "dp") == -1);
}

TEST_CASE("experts take the place of an MLP, which sends over tp") {
  const ModelFigures model = example("mixtral_8x7b");  // all 32 layers have experts
  CHECK(bytes_of("dp=2,ep=4,tp=2", model, "tp") == 16LL * 32 * 5 * 4096 * 4096 * 2 / 2);
}

TEST_CASE("the embedding, the loss and replicated parameters") {
  ModelFigures model;
  model.layers = 4;
  model.hidden = model.kv_hidden = 8;
  model.sequence = 6;
  model.microbatches = 3;
  model.parameters = 1000;
  model.optimizer = OptimizerSharing::replicated;
  const char* mesh = "pp=2,dp=2,tp=2;dp_cp=dp,tp_dp_cp=dp*tp,embd=ends(pp)";
  CHECK(bytes_of(mesh, model, "tp") == 3 * 2 * 10 * 6 * 8 * 2 / 2);
  CHECK(bytes_of(mesh, model, "dp_cp") == 2 * 4 * 1000 / 4 / 2);
  CHECK(bytes_of(mesh, model, "tp_dp_cp") == -1);
  CHECK(bytes_of(mesh, model, "embd") == -1);

  model.vocabulary = 32;
  model.tied_embedding = true;
  model.replicated_parameters = 100;
  // Both stages together have 5 of the collectives of a block, and the loss.
  CHECK(bytes_of(mesh, model, "tp") == (3 * 2 * 10 * 6 * 8 + 3 * 6 * (5 * 8 + 6) / 2) * 2 / 2);
  CHECK(bytes_of(mesh, model, "dp_cp") == 2 * 4 * (1000 - 100 + 32 * 8) / 4 / 2);
  CHECK(bytes_of(mesh, model, "tp_dp_cp") == 2 * 4 * 100 / 2 * 3 / 4);
  CHECK(bytes_of(mesh, model, "embd") == 32 * 8 / 2 * 4);
  // One stage has one embedding.
  CHECK(bytes_of("dp=2,tp=2;dp_cp=dp,embd=ends(dp)", model, "dp_cp") == 2 * 4 * 1000 / 2 / 2);
  model.optimizer = OptimizerSharing::fsdp;
  model.gathers = 6;
  CHECK(bytes_of("dp=4", model, "dp") == (4 + 6 * 2) * 1000 * 3 / 4);
}

TEST_CASE("experts: dispatch and combine, forward and backward") {
  const ModelFigures model = example("deepseek_v3");
  // Each of 4096 tokens goes to 8 experts, 63 of 64 copies leave the rank.
  CHECK(bytes_of("pp=2,edp=1,ep=64", model, "ep") ==
        2LL * (1 + 2) * 16 * 58 * 4096 * 8 * 7168 / 2 * 63 / 64);
  CHECK(bytes_of("pp=2,dp=64 | pp=2,edp=2,ep=32", model, "edp") ==
        (model.expert_parameters / 32 / 2 * 6 + 1) / 2);
}

TEST_CASE("without a family for the replicas of experts, dp sends their gradients too") {
  const ModelFigures model = example("mixtral_8x7b");
  const std::int64_t bytes = model.gradient_bytes + model.parameter_bytes;
  CHECK(bytes_of("dp=8", model, "dp") == bytes * model.parameters * 7 / 8);
  const std::int64_t held =
      model.parameters - model.expert_parameters + model.expert_parameters / 4;
  CHECK(bytes_of("dp=2,ep=4", model, "dp") == bytes * held / 2);
}

TEST_CASE("a limit of nodes per token limits what leaves the nodes") {
  const MeshPlan plan = MeshSpec::parse("pp=1,dp=64 | pp=1,edp=1,ep=64").plan();
  ModelFigures model = example("deepseek_v3");
  REQUIRE(model.nodes_per_token == 4);
  const Machine machine{
      64, {{.name = "node", .size = 8}, {.name = "socket", .kind = LevelKind::socket, .size = 4}}};
  const auto leaving = [&] {
    for (const FamilyVolume& volume : estimate(plan, model)) {
      if (volume.traffic.name != "ep") continue;
      const std::vector<FamilyTraffic> only{volume.traffic};
      const auto bytes = bytes_per_level(plan, machine, only);
      std::vector<std::int64_t> slots(64);  // also in a given assignment
      std::iota(slots.begin(), slots.end(), 0);
      CHECK(bytes_per_level(plan, machine, only, slots) == bytes);
      const Arrangements found = arrange(plan, machine, only);
      CHECK(found.bound[0] <= bytes[0]);
      CHECK(found.best.bytes == bytes);
      return bytes;
    }
    return std::vector<std::int64_t>{};
  };
  const auto limited = leaving();
  model.nodes_per_token = 0;
  const auto all = leaving();
  // 8 copies of a token, of which 7/8 leave the node, or 4.
  CHECK(static_cast<double>(limited[0]) == doctest::Approx(static_cast<double>(all[0]) * 4 / 7));
  CHECK(limited[1] == all[1]);  // inside a node, every expert gets its copy
  const std::vector<FamilyTraffic> ring{{"dp", 8, Pattern::ring, 4}};
  CHECK_THROWS_AS((void)bytes_per_level(plan, machine, ring), UsageError);
}

TEST_CASE("a model file is checked") {
  const auto refuse = [](std::string_view text, std::string_view reason) {
    try {
      (void)ModelFigures::parse_toml(text, "model.toml");
      FAIL("accepted");
    } catch (const SpecError& error) {
      CHECK(error.message() == reason);
    }
  };
  refuse("layers = 2\n", "model.toml: the model has no 'hidden'");
  refuse("layers = 2\nhidden = 8\nparameters = 9\nsequence = 4\noptimizer = \"x\"\n",
         "model.toml:5: unknown optimizer 'x'");
  refuse("layers = 2\nhidden = 8\nparameters = 9\nsequence = 4\nexpert_parameters = 10\n",
         "model.toml:5: the experts have more parameters than the whole model");
  refuse("layers = 2\nhidden = 8\nparameters = 9\nsequence = 4\nreplicated_parameters = 10\n",
         "model.toml:5: more parameters are replicated than there are without experts");
  refuse("layers = 2\nhidden = 8\nparameters = 9\nsequence = 4\nexpert_layers = 3\n",
         "model.toml:5: more layers have experts than there are layers");
  const ModelFigures small = ModelFigures::parse_toml(
      "layers = 2\nhidden = 8\nparameters = 9\nsequence = 4\n", "model.toml");
  CHECK_THROWS_AS((void)estimate(MeshSpec::parse("pp=4").plan(), small), SpecError);
}

TEST_CASE("parallelism that a mesh has only by another name is refused, not left out") {
  const ModelFigures model = ModelFigures::parse_toml(
      "layers = 8\nhidden = 8\nparameters = 9\nsequence = 4\n", "model.toml");
  const auto refuse = [&](std::string_view mesh, std::string_view what, std::string_view hint) {
    try {
      (void)estimate(MeshSpec::parse(mesh).plan(), model);
      FAIL_CHECK(mesh);
    } catch (const SpecError& error) {
      CHECK(std::string{error.message()}.find(what) != std::string::npos);
      CHECK(std::string{error.hint()}.find(hint) != std::string::npos);
    }
  };
  refuse("pp=4,data=1,tensor=8", "they know tensor parallelism as tp", "write tp=8 in place of");
  refuse("stage=4,tp=8", "they know pipeline parallelism as pp", "write pp=4 in place of");
  refuse("dp_shard=8,tp=2", "they know sharded parallelism as fsdp", "write fsdp=8 in place of");
  refuse("replica=4,tp=8", "they know data parallelism as dp", "write dp=4 in place of");
  CHECK(estimate(MeshSpec::parse("data=1,tp=2").plan(), model).size() == 1);
}
