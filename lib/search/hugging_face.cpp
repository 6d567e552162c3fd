// SPDX-License-Identifier: BSD-3-Clause
#include "search/hugging_face.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "rankmesh/base/error.hpp"
#include "search/model_shape.hpp"

namespace rankmesh::search {
namespace {

constexpr std::array<std::string_view, 8> known_types{
    "llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"};

class ConfigReader {
 public:
  ConfigReader(std::string_view text, std::string_view origin)
      : json_(nlohmann::json::parse(text, nullptr, false)), origin_{origin} {
    if (!json_.is_object())
      throw SpecError{fmt::format("{}: the text is no object of JSON", origin),
                      "give a TOML file, or the config.json of a model of Hugging Face"};
    const auto found = json_.find("model_type");
    type_ = found != json_.end() && found->is_string() ? found->get<std::string>() : "";
    if (std::ranges::find(known_types, type_) == known_types.end())
      throw SpecError{fmt::format("{}: the model_type '{:.40}' is not known", origin, type_),
                      fmt::format("use a model of the type {}, or write a TOML file "
                                  "(docs/search.md)",
                                  fmt::join(known_types, ", "))};
  }

  [[nodiscard]] const std::string& type() const { return type_; }
  [[nodiscard]] std::int64_t number(const char* field) const {
    const auto found = json_.find(field);
    if (found == json_.end() || found->is_null())
      throw SpecError{fmt::format("{}: the {} model has no '{}'", origin_, type_, field),
                      fmt::format("add the number \"{}\" to the file", field)};
    constexpr std::int64_t most = 1 << 24;  // as in TOML
    if (!found->is_number_integer() || found->get<std::int64_t>() < 0 ||
        found->get<std::int64_t>() > most)
      throw SpecError{fmt::format("{}: '{}' is not an integer from 0 to {}", origin_, field, most),
                      "correct the number"};
    return found->get<std::int64_t>();
  }
  [[nodiscard]] std::int64_t number(const char* field, std::int64_t otherwise) const {
    const auto found = json_.find(field);
    return found == json_.end() || found->is_null() ? otherwise : number(field);
  }
  // A number of which one is the least: each n-th layer.
  [[nodiscard]] std::int64_t step(const char* field) const {
    const std::int64_t found = number(field, 1);
    if (found < 1)
      throw SpecError{fmt::format("{}: '{}' is 0", origin_, field), "correct the number"};
    return found;
  }
  // The numbers of a list, which may be missing.
  [[nodiscard]] std::set<std::int64_t> list(const char* field) const {
    std::set<std::int64_t> numbers;
    const auto found = json_.find(field);
    if (found == json_.end() || found->is_null()) return numbers;
    if (!found->is_array() ||
        !std::ranges::all_of(*found, [](const auto& value) { return value.is_number_integer(); }))
      throw SpecError{fmt::format("{}: '{}' is not a list of integers", origin_, field),
                      "correct the list"};
    for (const auto& value : *found) numbers.insert(value.get<std::int64_t>());
    return numbers;
  }
  [[nodiscard]] bool flag(const char* field) const {
    const auto found = json_.find(field);
    return found != json_.end() && found->is_boolean() && found->get<bool>();
  }

 private:
  nlohmann::json json_;
  std::string origin_;
  std::string type_;
};

void read_mixtral(const ConfigReader& config, ModelFigures& m) {
  const bool is_qwen = config.type() == "qwen3_moe";
  m.experts = config.number(is_qwen ? "num_experts" : "num_local_experts");
  m.experts_per_token = config.number("num_experts_per_tok");
  if (is_qwen) {
    const std::int64_t step = config.step("decoder_sparse_step");
    const std::set<std::int64_t> dense = config.list("mlp_only_layers");
    for (std::int64_t layer = 0; layer < m.layers; ++layer)
      m.expert_layers += (layer + 1) % step == 0 && !dense.contains(layer);
  } else {
    m.expert_layers = m.layers;
  }
  m.expert_feed_forward = is_qwen ? config.number("moe_intermediate_size") : m.feed_forward;
}

void read_deepseek(const ConfigReader& config, ModelFigures& m) {
  m.experts = config.number("n_routed_experts");
  m.experts_per_token = config.number("num_experts_per_tok");
  m.shared_experts = config.number("n_shared_experts", 0);
  const std::int64_t step = config.step("moe_layer_freq");
  for (std::int64_t layer = config.number("first_k_dense_replace", 0); layer < m.layers; ++layer)
    m.expert_layers += layer % step == 0;
  m.expert_feed_forward = config.number("moe_intermediate_size");
  m.query_rank = config.number("q_lora_rank", 0);
  m.latent_rank = config.number("kv_lora_rank");
  m.head_size = config.number("qk_nope_head_dim");
  m.rope_size = config.number("qk_rope_head_dim");
  m.value_size = config.number("v_head_dim");
  // One group is none: a token may then choose the experts of any node.
  if (config.number("n_group", 0) != 1) m.nodes_per_token = config.number("topk_group", 0);
}

}  // namespace

ModelFigures parse_hugging_face(std::string_view text, std::string_view origin) {
  const ConfigReader config{text, origin};
  ModelFigures m;
  m.name = config.type();
  m.layers = config.number("num_hidden_layers");
  m.hidden = config.number("hidden_size");
  m.heads = config.number("num_attention_heads");
  m.kv_heads = config.number("num_key_value_heads", m.heads);
  m.head_size = config.number("head_dim", 0);
  m.feed_forward = config.number("intermediate_size");
  m.vocabulary = config.number("vocab_size");
  m.sequence = config.number("max_position_embeddings");
  m.gated = true;
  m.tied_embedding = config.flag("tie_word_embeddings");
  if (m.layers < 1 || m.hidden < 1 || m.heads < 1)
    throw SpecError{fmt::format("{}: the model has no layers, or they have no elements", origin),
                    "check num_hidden_layers, hidden_size and num_attention_heads"};
  if (config.type() == "mixtral" || config.type() == "qwen3_moe") read_mixtral(config, m);
  if (config.type().starts_with("deepseek")) read_deepseek(config, m);
  const std::int64_t head = m.head_size > 0 ? m.head_size : m.hidden / m.heads;
  m.kv_hidden = m.kv_heads * head;
  const ModelShape shape{m};
  m.parameters = static_cast<std::int64_t>(shape.all_parameters);
  m.expert_parameters = static_cast<std::int64_t>(shape.expert_parameters);
  return m;
}

}  // namespace rankmesh::search
