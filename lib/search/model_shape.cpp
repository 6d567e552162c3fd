// SPDX-License-Identifier: BSD-3-Clause
#include "search/model_shape.hpp"

#include <numeric>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::search {
namespace {

double require_figure(std::int64_t value, const char* field, const char* example) {
  if (value <= 0)
    throw SpecError{fmt::format("the model has no '{}', which a search needs", field),
                    fmt::format("write {} = {}", field, example)};
  return static_cast<double>(value);
}

// Latent attention compresses the queries and the keys (2405.04434, section 2.1).
void add_latent_attention(const ModelFigures& m, double heads, double head, double value,
                          LayerShape& layer) {
  const double h = static_cast<double>(m.hidden);
  const double rank = static_cast<double>(m.latent_rank);
  const double rope = require_figure(m.rope_size, "rope_size", "64");
  const double query = static_cast<double>(m.query_rank);
  const double down = h * (rank + rope) + h * query;
  const double up_query = (query > 0 ? query : h) * heads * (head + rope);
  const double up_keys = rank * heads * (head + value);
  layer.replicated += down;
  layer.divided += up_query + up_keys + heads * value * h;
  layer.products.insert(layer.products.end(), {up_query, up_keys, heads * value * h});
  layer.kept_whole += 2 * (query + rank + rope);
}

void add_attention(const ModelFigures& m, double heads, double kv_heads, double head, double value,
                   LayerShape& layer) {
  const double h = static_cast<double>(m.hidden);
  if (m.latent_rank > 0) {
    add_latent_attention(m, heads, head, value, layer);
  } else {
    const double queries = h * (heads * head + kv_heads * (head + value));
    layer.products.insert(layer.products.end(), {queries, heads * value * h});
    layer.divided += queries + heads * value * h;
  }
}

// What a block of attention keeps: its input, the input of its norm, a mask, queries, keys, values
// and the result (2205.05198, section 4.1).
void keep_attention(const ModelFigures& m, double query, double keys, double values, double result,
                    LayerShape& layer) {
  const double h = static_cast<double>(m.hidden);
  layer.kept_whole += (4 + (m.dropout ? 1 : 0)) * h;
  layer.inputs_whole += 2 * h;
  layer.kept_divided += 2 * (query + keys + values + result);
}

// The MLP keeps its input, the input of its norm, a mask, and what is before and behind its
// activation; a gated one has two tensors before it.
void add_mlp(const ModelFigures& m, double inner, double visits, LayerShape& layer) {
  const double h = static_cast<double>(m.hidden);
  const double before = m.gated ? 2 : 1;
  layer.kept_divided += visits * 2 * (before + 1) * inner;
  layer.inputs_divided += visits * 2 * inner;
  layer.inside_mlp += visits * 2 * (before + 1) * inner;
  const std::vector<double> products{before * h * inner, h * inner};
  auto& to = visits == 0 ? layer.per_expert : layer.products;
  to.insert(to.end(), products.begin(), products.end());
}

void add_norms(const ModelFigures& m, LayerShape& layer) {
  const double h = static_cast<double>(m.hidden);
  layer.kept_whole += (4 + (m.dropout ? 1 : 0)) * h;  // of the MLP's block
  layer.inputs_whole += 2 * h;
  layer.replicated += 2 * h;
}

void check(bool is_right, const std::string& reason, const char* hint) {
  if (!is_right) throw SpecError{reason, hint};
}

constexpr std::int64_t most_layers = 65536;  // and heads
constexpr double most_parameters = 1e15;

void check_figures(const ModelFigures& m, std::int64_t kv_heads) {
  check(m.layers <= most_layers && m.heads <= most_layers,
        fmt::format("{} layers with {} heads are more than a search tries", m.layers, m.heads),
        "check layers and heads: 65536 each at most");
  check(m.heads % kv_heads == 0,
        fmt::format("{} heads of keys do not divide the {} heads of the model", kv_heads, m.heads),
        "check heads and kv_heads");
  check(m.head_size > 0 || m.hidden % m.heads == 0,
        fmt::format("{} heads do not divide the {} elements of a token", m.heads, m.hidden),
        "check heads and hidden, or write head_size");
  check(m.expert_layers >= 0 && m.expert_layers <= m.layers,
        fmt::format("{} of the {} layers have experts", m.expert_layers, m.layers),
        "check expert_layers and layers");
  check(m.experts <= most_layers,
        fmt::format("{} experts of a layer are more than a search tries", m.experts),
        "check experts: 65536 at most");
  check(m.expert_layers == 0 || m.experts_per_token <= m.experts,
        fmt::format("each token goes to {} of {} experts", m.experts_per_token, m.experts),
        "check experts and experts_per_token");
}

}  // namespace

ModelShape::ModelShape(const ModelFigures& m, const Keeping& keeping) {
  const double h = static_cast<double>(m.hidden);
  const double heads = require_figure(m.heads, "heads", "64");
  kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
  check_figures(m, kv_heads);
  const double head = m.head_size > 0 ? static_cast<double>(m.head_size) : h / heads;
  const double value = m.value_size > 0 ? static_cast<double>(m.value_size) : head;
  const double rope = m.latent_rank > 0 ? static_cast<double>(m.rope_size) : 0;
  const double keys_heads = m.latent_rank > 0 ? heads : static_cast<double>(kv_heads);
  query_width = heads * (head + rope);
  scores = 5 * heads * static_cast<double>(m.sequence);
  kept_layer_input = 2 * h;
  kept_last_norm = (keeping.repeats_norms ? 2 : 4) * h;
  embedding = require_figure(m.vocabulary, "vocabulary", "128_256") * h;
  dense_layers = m.layers - m.expert_layers;
  for (LayerShape* layer : {&dense, &sparse}) {
    add_attention(m, heads, static_cast<double>(kv_heads), head, value, *layer);
    keep_attention(m, query_width, keys_heads * (head + rope), keys_heads * value, heads * value,
                   *layer);
    add_norms(m, *layer);
  }
  if (dense_layers > 0) {
    add_mlp(m, require_figure(m.feed_forward, "feed_forward", "28_672"), 1, dense);
    for (std::size_t i = dense.products.size() - 2; i < dense.products.size(); ++i)
      dense.divided += dense.products[i];
  }
  // Selective recomputation without scores: of a dense layer, the MLP (Megatron-Core's module mlp);
  // of a layer with experts, what norms and activations return, and what latent attention makes of
  // its latents (2412.19437, section 3.2.3).
  dense.cheap_whole = keeping.repeats_norms ? dense.inputs_whole : 0;
  dense.cheap_divided = keeping.repeats_norms ? dense.inputs_divided : dense.inside_mlp;
  dense.cheap_inputs = dense.inputs_divided;
  if (dense_layers > 0 && !keeping.repeats_norms)
    dense.repeated = dense.products[dense.products.size() - 2];
  if (m.expert_layers > 0) {
    const double experts = require_figure(m.experts, "experts", "8");
    const double top = require_figure(m.experts_per_token, "experts_per_token", "2");
    const double inner = m.expert_feed_forward > 0
                             ? static_cast<double>(m.expert_feed_forward)
                             : require_figure(m.feed_forward, "expert_feed_forward", "2_048");
    add_mlp(m, inner, 0, sparse);
    sparse.expert =
        experts * std::accumulate(sparse.per_expert.begin(), sparse.per_expert.end(), 0.0);
    sparse.replicated += h * experts;  // the router
    // The copies of a token, and what the experts keep of them (derived; not in a paper).
    sparse.kept_divided +=
        top * ((keeping.has_results ? 4 : 2) * h + 2 * (m.gated ? 3 : 2) * inner);
    sparse.inputs_divided += top * (2 * h + 2 * inner);
    if (m.shared_experts > 0) {
      add_mlp(m, inner * static_cast<double>(m.shared_experts), 1, sparse);
      for (std::size_t i = sparse.products.size() - 2; i < sparse.products.size(); ++i)
        sparse.divided += sparse.products[i];
    }
  }
  const double inner =
      static_cast<double>(m.expert_feed_forward > 0 ? m.expert_feed_forward : m.feed_forward);
  sparse.cheap_whole = sparse.inputs_whole;
  sparse.cheap_inputs = 2 * inner * static_cast<double>(m.experts_per_token + m.shared_experts);
  sparse.cheap_divided = sparse.cheap_inputs;
  if (m.latent_rank > 0) {
    sparse.cheap_divided += 2 * (query_width + keys_heads * (head + rope + value));
    sparse.repeated = sparse.products[0] + sparse.products[1];
  }
  expert_parameters = static_cast<double>(m.expert_layers) * sparse.expert;
  all_parameters = static_cast<double>(dense_layers) * (dense.divided + dense.replicated) +
                   static_cast<double>(m.expert_layers) * (sparse.divided + sparse.replicated) +
                   expert_parameters + embedding * (m.tied_embedding ? 1 : 2);
  check(all_parameters <= most_parameters,
        fmt::format("{:.0e} parameters are more than a search tries", all_parameters),
        "check the sizes of the model: 1e15 parameters at most");
}

double counted_parameters(const ModelFigures& model) {
  try {
    return ModelShape{model}.all_parameters;
  } catch (const SpecError&) {
    return 0;
  }
}

}  // namespace rankmesh::search
