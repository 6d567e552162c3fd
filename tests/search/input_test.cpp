// SPDX-License-Identifier: BSD-3-Clause
// What a search reads and writes: models, devices, and settings.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "rankmesh/base/error.hpp"
#include "search/hugging_face.hpp"
#include "search/model_shape.hpp"
#include "search/settings.hpp"
#include "search/system.hpp"
#include "support/checks.hpp"

using rankmesh::ModelFigures;
using rankmesh::SpecError;
using rankmesh::UsageError;
using namespace rankmesh::search;

namespace {

constexpr const char* llama3_70b = R"({"model_type": "llama", "hidden_size": 8192,
  "intermediate_size": 28672, "num_attention_heads": 64, "num_hidden_layers": 80,
  "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192})";
constexpr const char* mixtral = R"({"model_type": "mixtral", "hidden_size": 4096,
  "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768,
  "num_local_experts": 8, "num_experts_per_tok": 2})";
constexpr const char* qwen3_moe = R"({"model_type": "qwen3_moe", "hidden_size": 4096,
  "intermediate_size": 12288, "num_attention_heads": 64, "num_hidden_layers": 94,
  "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
  "max_position_embeddings": 40960, "num_experts": 128, "num_experts_per_tok": 8,
  "moe_intermediate_size": 1536})";
constexpr const char* deepseek = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
  "intermediate_size": 18432, "num_attention_heads": 128, "num_hidden_layers": 61,
  "num_key_value_heads": 128, "vocab_size": 129280, "max_position_embeddings": 163840,
  "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
  "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "q_lora_rank": 1536,
  "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
  "topk_group": 4})";

std::string without(std::string text, const std::string& field) {
  const std::size_t at = text.find("\"" + field + "\"");
  return text.replace(at, field.size() + 2, "\"gone\"");
}

}  // namespace

TEST_CASE("models of Hugging Face have the published number of parameters") {
  CHECK(parse_hugging_face(llama3_70b, "x").parameters == doctest::Approx(70.55e9).epsilon(0.001));
  CHECK(parse_hugging_face(mixtral, "x").parameters == doctest::Approx(46.7e9).epsilon(0.001));
  CHECK(parse_hugging_face(qwen3_moe, "x").parameters == doctest::Approx(235e9).epsilon(0.002));
  const ModelFigures v3 = parse_hugging_face(deepseek, "x");
  CHECK(v3.parameters == doctest::Approx(671e9).epsilon(0.001));
  CHECK((v3.expert_layers == 58 && v3.latent_rank == 512 && v3.nodes_per_token == 4));
  std::string ungrouped = deepseek;  // one group has the experts of all nodes
  ungrouped.insert(ungrouped.find("\"topk_group\""), "\"n_group\": 1, ");
  CHECK(parse_hugging_face(ungrouped, "x").nodes_per_token == 0);
}

TEST_CASE("the layers that have experts are counted as the models of Hugging Face choose them") {
  const auto layers = [](const char* config, const std::string& fields) {
    return parse_hugging_face("{" + fields + ", " + (config + 1), "x").expert_layers;
  };
  CHECK(layers(qwen3_moe, R"("decoder_sparse_step": 1, "mlp_only_layers": [])") == 94);
  CHECK(layers(qwen3_moe, R"("decoder_sparse_step": 3)") == 31);  // 2, 5, ..., 92
  CHECK(layers(qwen3_moe, R"("decoder_sparse_step": 3, "mlp_only_layers": [0, 5, 94])") == 30);
  CHECK(layers(deepseek, R"("moe_layer_freq": 1)") == 58);
  CHECK(layers(deepseek, R"("moe_layer_freq": 2)") == 29);  // 4, 6, ..., 60
  CHECK(layers(mixtral, R"("mlp_only_layers": null)") == 32);
}

TEST_CASE("a missing field is named") {
  const auto message = [](const std::string& text) {
    try {
      (void)parse_hugging_face(text, "config.json");
    } catch (const SpecError& error) {
      return error.message();
    }
    return std::string{"accepted"};
  };
  for (const char* field : {"hidden_size", "num_attention_heads", "vocab_size"})
    CHECK(message(without(llama3_70b, field)) ==
          "config.json: the llama model has no '" + std::string{field} + "'");
  CHECK(message(without(mixtral, "num_local_experts")) ==
        "config.json: the mixtral model has no 'num_local_experts'");
  CHECK(message(without(deepseek, "kv_lora_rank")) ==
        "config.json: the deepseek_v3 model has no 'kv_lora_rank'");
  CHECK(message(R"({"model_type": "t5"})") == "config.json: the model_type 't5' is not known");
  const auto with = [&](const std::string& text, const std::string& field, const char* value) {
    const std::size_t at = text.find(':', text.find("\"" + field + "\"")) + 1;
    return message(text.substr(0, at) + value + text.substr(text.find_first_of(",}", at)));
  };
  CHECK(with(llama3_70b, "num_key_value_heads", "7") ==
        "7 heads of keys do not divide the 64 heads of the model");
  CHECK(with(llama3_70b, "hidden_size", "8191") ==
        "64 heads do not divide the 8191 elements of a token");
  CHECK(with(llama3_70b, "num_hidden_layers", "1000000") ==
        "1000000 layers with 64 heads are more than a search tries");
  CHECK_CONTAINS(with(llama3_70b, "hidden_size", "16777216"),
                 "parameters are more than a search tries");
  for (const char* value : {"4611686018427387904", "-1", "4096.0", "[1]"})
    CHECK(with(llama3_70b, "vocab_size", value) ==
          "config.json: 'vocab_size' is not an integer from 0 to 16777216");
  CHECK(with(mixtral, "num_local_experts", "1000000") ==
        "1000000 experts of a layer are more than a search tries");
  CHECK(with(mixtral, "num_experts_per_tok", "9") == "each token goes to 9 of 8 experts");
  for (const char* value : {"3", "[true]"})
    CHECK(message(std::string{R"({"mlp_only_layers": )"} + value + "," + (qwen3_moe + 1)) ==
          "config.json: 'mlp_only_layers' is not a list of integers");
  CHECK(message(std::string{R"({"decoder_sparse_step": 0,)"} + (qwen3_moe + 1)) ==
        "config.json: 'decoder_sparse_step' is 0");
  CHECK(message("{") == "config.json: the text is no object of JSON");
  ModelFigures m;
  m.layers = 2, m.hidden = 64;
  CHECK_THROWS_WITH_AS((void)ModelShape{m}, doctest::Contains("no 'heads'"), SpecError);
  m.heads = 4;
  CHECK_THROWS_WITH_AS((void)ModelShape{m}, doctest::Contains("no 'vocabulary'"), SpecError);
  m.vocabulary = 100;
  CHECK_THROWS_WITH_AS((void)ModelShape{m}, doctest::Contains("no 'feed_forward'"), SpecError);
}

TEST_CASE("the example models have the parameters that they state") {
  for (const char* name : {"llama3_405b", "mixtral_8x7b", "deepseek_v3", "gpt2"}) {
    const std::string path = std::string{RANKMESH_EXAMPLE_MODELS} + "/" + name + ".toml";
    std::ifstream file{path};
    const ModelFigures m =
        ModelFigures::parse_toml(std::string{std::istreambuf_iterator<char>{file}, {}}, path);
    const ModelShape shape{m};
    INFO(name);
    CHECK(shape.all_parameters == doctest::Approx(double(m.parameters)).epsilon(0.01));
    CHECK(shape.expert_parameters == doctest::Approx(double(m.expert_parameters)).epsilon(0.01));
  }
}

TEST_CASE("devices: names, files, and what is refused") {
  CHECK(device_names() == std::vector<std::string>{"A100", "H100", "H200", "B200"});
  CHECK_THROWS_WITH_AS((void)device_figures("H900"), doctest::Contains("'H900'"), UsageError);
  const DeviceFigures device =
      parse_device("device = \"H100\"\nname = \"H800\"\nnode_bandwidth = 200e9\n", "x.toml");
  CHECK((device.name == "H800" && device.node_bandwidth == 200e9 && device.memory == 80e9));
  CHECK_THROWS_WITH_AS((void)parse_device("flops = 1e15\n", "x.toml"),
                       doctest::Contains("x.toml: the machine has no 'memory'"), SpecError);
  CHECK_THROWS_WITH_AS((void)parse_device("device = \"H100\"\nmemory = -1\n", "x.toml"),
                       doctest::Contains("x.toml:2"), SpecError);
  CHECK_THROWS_AS((void)parse_device("memroy = 1\n", "x.toml"), SpecError);
  CHECK_THROWS_WITH_AS((void)parse_device("device = \"H900\"\n", "x.toml"),
                       doctest::Contains("x.toml:1: the figures of a device 'H900'"), SpecError);
  CHECK_THROWS_WITH_AS((void)parse_device("device = \"H100\"\nnode_efficiency = 65\n", "x.toml"),
                       doctest::Contains("x.toml:2: 'node_efficiency' is greater than 1"),
                       SpecError);
  const DeviceFigures own = parse_device(
      "memory = 80e9\nflops = 1e15\nmemory_bandwidth = 2e12\nnode_bandwidth = 300e9\n"
      "network_bandwidth = 25e9\n",
      "own.toml");
  CHECK((own.name == "own.toml" && own.flops_fp8 == 0));
  for (const char* value : {"inf", "nan", "1e300", "1e-300"})
    CHECK_THROWS_AS((void)parse_device(std::string{"device = \"H100\"\nflops = "} + value, "x"),
                    SpecError);
  CHECK_THROWS_AS((void)software("megatron", "pure"), UsageError);
  CHECK_THROWS_AS((void)software("pytorch", "bf16"), UsageError);
}

TEST_CASE("settings round through TOML, and JSON has the same keys") {
  const MeshSettings s{.pp = 16,
                       .dp = 8,
                       .cp = 2,
                       .tp = 8,
                       .virtual_stages = 2,
                       .micro_batch = 2,
                       .microbatches = 32,
                       .zero = 2,
                       .sequence_parallel = true,
                       .recompute = Recompute::full,
                       .stages = StageKind::counted};
  CHECK(s.mesh() == "pp=16,dp=8,cp=2,tp=8");
  CHECK(parse_settings(to_toml(s, 126), "x").settings == s);
  const MeshSettings experts{.pp = 8, .dp = 64, .tp = 2, .ep = 64, .sequence_parallel = true};
  CHECK(experts.mesh() == "pp=8,dp=64,tp=2|pp=8,edp=2,ep=64");
  CHECK(parse_settings(to_toml(experts, 64), "x").settings == experts);
  const auto row = parse_settings(
      R"({"mesh": "pp=2,dp=4,tp=8",
          "settings": {"zero": 1, "recompute": "full", "seconds": 3, "memory_gb": 61.5}})",
      "x");
  CHECK((row.settings.tp == 8 && row.settings.recompute == Recompute::full));
  CHECK(parse_settings("mesh = 'dp=auto,tp=8'\nworld_size = 64\n", "x").settings.dp == 8);
  CHECK((row.measured.seconds == 3.0 && row.measured.bytes == 61.5e9));
  const auto refuses = [](const std::string& text, const char* why) {
    CHECK_THROWS_WITH_AS((void)parse_settings(text, "x.toml"), doctest::Contains(why), SpecError);
  };
  refuses("[settings]\nzero = 1\n", "the file has no mesh");
  refuses("mesh = 'tp=2'\nzero = 1\n", "unknown key 'zero'");
  refuses("mesh = 'tp=2'\nsettings = 1\n", "'settings' must be a table");
  refuses("mesh = 'tp=2'\n[settings]\nzreo = 1\n", "x.toml:3: unknown key 'zreo'");
  refuses("mesh = 'tp=2'\n[settings]\nseconds = '3'\n",
          "x.toml:3: 'seconds' is no positive number");
  refuses("mesh = 'tp=2'\n[settings]\nmemory_gb = -1\n", "'memory_gb' is no positive number");
  refuses("mesh = 'tp=2'\n[settings]\nmicro_batch = 0\n", "from 1 to");
  CHECK_THROWS_AS((void)parse_settings("{", "x.json"), SpecError);
  refuses("mesh = 'tp=2'\n[settings]\nrecompute = 'some'\n", "unknown recompute 'some'");
  CHECK_THROWS_AS((void)settings_of_mesh("pp=2,sp=4"), SpecError);
  for (const char* mesh : {"pp=2,dp=2,cp=2,tp=2", "tp=1,pp=4,dp=2", "pp=4,tp=2|pp=4,ep=2"})
    CHECK(has_search_order(mesh));
  for (const char* mesh : {"tp=8,dp=2,pp=4", "dp=2,pp=4", "pp=4,cp=2,dp=2"})
    CHECK(!has_search_order(mesh));
  CHECK_THROWS_AS((void)settings_of_mesh("pp=2 | pp=2,ep=4"), rankmesh::Error);
}
