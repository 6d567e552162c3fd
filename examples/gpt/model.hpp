// SPDX-License-Identifier: BSD-3-Clause
// The part of the model that this rank has: its chunks of layers, and on the first and the last
// stage the vocabulary.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "attention.hpp"
#include "experts.hpp"
#include "mlp.hpp"
#include "store.hpp"
#include "text.hpp"
#include "vocabulary.hpp"

class Model {
 public:
  /// Collective over the mesh.
  Model(const Config& config, const Groups& groups)
      : config_{config}, groups_{groups}, vocabulary_{config, groups} {
    const std::int64_t first = place(vocabulary_.own, place(vocabulary_.shared, 0));
    std::vector<std::vector<Parameter>> layers;
    for (std::int64_t chunk = 0; chunk < config.chunks; ++chunk)
      for (std::int64_t i = 0; i < layers_of_chunk(); ++i) {
        const std::int64_t layer =
            (chunk * groups.pp.size() + groups.pp.rank_in_group().value()) * layers_of_chunk() + i;
        auto attention = std::make_unique<Attention>(config, groups);
        std::unique_ptr<Part> after;
        if (config.experts > 0)
          after = std::make_unique<Experts>(config, groups);
        else
          after = std::make_unique<Mlp>(config, groups);
        // All layers have the same size.
        const std::int64_t size = place(after->parameters, place(attention->parameters, 0));
        size_ = first + config.layers * size;
        place(after->parameters, place(attention->parameters, first + layer * size));
        for (Part* part : {static_cast<Part*>(attention.get()), after.get()})
          layers.push_back(part->parameters);
        parts_.push_back(std::move(attention));
        parts_.push_back(std::move(after));
      }
    const bool accumulates = Share{config, groups}.microbatches > 1;
    layers_ = std::make_unique<Store>(groups, std::move(layers), config.zero, accumulates);
    if (groups.embd == nullptr) return;
    using Parts = std::vector<std::vector<Parameter>>;
    ends_ = std::make_unique<Store>(groups, Parts{vocabulary_.own}, config.zero, accumulates);
    embedding_ =
        std::make_unique<Store>(groups, Parts{vocabulary_.shared}, config.zero, accumulates);
  }

  /// Returns the number of parameters of the whole model.
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// First stage: returns the input of the first layer.
  Values embed(const Tokens& tokens) {
    Values x = vocabulary_.embed(vocabulary_weights(), tokens.inputs);
    release_vocabulary();
    return x;
  }
  void embed_backward(const Tokens& tokens, const Values& dx) {
    vocabulary_.embed_backward(vocabulary_gradients(), tokens.inputs, dx);
  }
  /// Last stage: returns the loss of the output of the last layer.
  double loss(const Tokens& tokens, const Values& x) {
    const double loss = vocabulary_.loss(vocabulary_weights(), x, tokens.targets);
    release_vocabulary();
    return loss;
  }
  Values loss_backward() {
    Values dx = vocabulary_.loss_backward(vocabulary_weights(), vocabulary_gradients());
    release_vocabulary();
    return dx;
  }

  /// A model of one stage: returns the scores of all tokens of the vocabulary, as the token that
  /// follows row r of the tokens.
  Values scores(const Tokens& tokens, std::int64_t r) {
    const Values x = forward(0, embed(tokens));
    return vocabulary_.scores(vocabulary_weights(), x, r);
  }

  /// Runs the layers of a chunk.
  Values forward(std::int64_t chunk, Values x) {
    for (std::int64_t p = first_part(chunk); p < first_part(chunk + 1); ++p) {
      x = parts_[p]->forward(layers_->weights(p), std::move(x));
      layers_->release(p);
    }
    return x;
  }
  /// Runs them backwards. In the last microbatch of a step, the gradients of each part are added up
  /// over its replicas while the parts before it are computed.
  Values backward(std::int64_t chunk, Values dy, bool is_last_microbatch) {
    for (std::int64_t p = first_part(chunk + 1) - 1; p >= first_part(chunk); --p) {
      dy = parts_[p]->backward(layers_->weights(p), layers_->gradients(p), std::move(dy));
      layers_->release(p);
      if (is_last_microbatch) layers_->reduce(p);
      groups_.mesh.progress();
    }
    return dy;
  }
  /// Adds up the gradients of the vocabulary. The first and the last stage both have its matrix.
  void reduce_vocabulary() {
    if (groups_.embd == nullptr) return;
    groups_.embd->all_reduce(embedding_->gradients(0).front());
    embedding_->reduce(0);
    ends_->reduce(0);
  }

  /// Updates the parameters with clipped gradients. Returns the norm of the gradients.
  double update(const AdamW& optimizer, std::int64_t step, double most) {
    double squares = layers_->squares();
    if (embedding_) {
      const double of_embedding = embedding_->squares();
      squares += ends_->squares();
      if (groups_.pp.is_first()) squares += of_embedding;  // the last stage has the same
    }
    groups_.world.all_reduce(squares);
    const double norm = std::sqrt(squares), scale = std::min(1.0, most / norm);
    for_each_store([&](Store& store) { store.update(optimizer, step, scale); });
    return norm;
  }

  /// Returns the bytes that are kept for backward passes.
  [[nodiscard]] std::int64_t kept() const {
    std::int64_t sum = vocabulary_.bytes();
    for (const auto& part : parts_) sum += part->bytes();
    return sum;
  }

  /// Calls use(name, parameter, stage, store, part, i) for each parameter of the whole model: on
  /// the ranks of its stage, it is parameter i of this part of a store, which is null elsewhere.
  /// The last stage has a copy of the embedding, which comes last.
  template <class Use>
  void for_each_parameter(Use&& use) {
    const std::int64_t stages = groups_.pp.size(), here = groups_.pp.rank_in_group().value();
    const auto store_on = [&](std::int64_t stage, const std::unique_ptr<Store>& store) {
      return stage == here ? store.get() : nullptr;
    };
    use("embedding", vocabulary_.shared[0], 0, store_on(0, embedding_), 0, 0);
    for (std::size_t i = 0; i < vocabulary_.own.size(); ++i) {
      const Parameter& p = vocabulary_.own[i];
      const std::int64_t stage = p.name == "positions" ? 0 : stages - 1;
      use(p.name, p, stage, store_on(stage, ends_), 0, i);
    }
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::int64_t per_chunk = layers_of_chunk(), chunk = layer / per_chunk / stages;
      const std::int64_t stage = layer / per_chunk % stages;
      const std::string name = "layers." + std::to_string(layer) + ".";
      for (std::int64_t part = 0; part < 2; ++part) {
        const std::int64_t own = 2 * (chunk * per_chunk + layer % per_chunk) + part;
        const std::vector<Parameter>& of = parts_[own]->parameters;
        for (std::size_t i = 0; i < of.size(); ++i)
          use(name + of[i].name, of[i], stage, store_on(stage, layers_), own, i);
      }
    }
    if (stages > 1)
      use("embedding", vocabulary_.shared[0], stages - 1, store_on(stages - 1, embedding_), 0, 0);
  }

  /// Calls use(store) for the stores of this rank. The last stage has a copy of the embedding of
  /// the first one.
  template <class Use>
  void for_each_store(Use&& use) {
    for (const auto& store : {&layers_, &ends_, &embedding_})
      if (*store) use(**store);
  }

 private:
  [[nodiscard]] std::int64_t layers_of_chunk() const {
    return config_.layers / (groups_.pp.size() * config_.chunks);
  }
  // A layer has two parts.
  [[nodiscard]] std::int64_t first_part(std::int64_t chunk) const {
    return 2 * chunk * layers_of_chunk();
  }

  Weights vocabulary_weights() { return joined(embedding_->weights(0), ends_->weights(0)); }
  Gradients vocabulary_gradients() { return joined(embedding_->gradients(0), ends_->gradients(0)); }
  void release_vocabulary() {
    embedding_->release(0);
    ends_->release(0);
  }
  template <class List>
  static List joined(List shared, const List& own) {
    shared.insert(shared.end(), own.begin(), own.end());
    return shared;
  }

  const Config& config_;
  const Groups& groups_;
  std::int64_t size_ = 0;
  Vocabulary vocabulary_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::unique_ptr<Store> layers_;
  std::unique_ptr<Store> ends_;       // Vocabulary::own; null between the first and the last stage
  std::unique_ptr<Store> embedding_;  // Vocabulary::shared; null there, too
};
