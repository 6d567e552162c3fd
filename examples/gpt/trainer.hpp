// SPDX-License-Identifier: BSD-3-Clause
// Trains the model step by step.
#pragma once

#include <string>

#include "checkpoint.hpp"
#include "pipeline.hpp"

class Trainer {
 public:
  /// Collective over the mesh.
  Trainer(const Config& config, Groups& groups, const std::string& text)
      : config_{checked(config, groups)},
        groups_{groups},
        text_{text, config.context},
        model_{config_, groups},
        pipeline_{config_, groups, model_} {}

  /// Runs one step. Returns its loss on all ranks: the mean cross-entropy of a token before the
  /// step, in nats.
  double step() {
    const double loss = loss_and_gradients();
    update();
    return loss;
  }
  /// The first half of a step.
  double loss_and_gradients() {
    double loss = pipeline_.run(text_, steps_);
    groups_.data.all_reduce(loss);
    groups_.pp.broadcast(loss, groups_.pp.size() - 1);
    return loss;
  }
  /// The second half.
  void update() {
    ++steps_;
    norm_ = model_.update(AdamW{.rate = config_.rate}, steps_, 1);
  }

  /// Writes a checkpoint. Collective over the mesh.
  void save(const std::string& path) {
    Checkpoint{config_, steps_, model_.size()}.write(path, model_, groups_);
  }
  /// Continues from a checkpoint, which any mesh has written. Local.
  void load(const std::string& path) {
    steps_ = Checkpoint{config_, 0, model_.size()}.read(path, model_);
  }

  /// Returns the number of steps that the model has been trained.
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Returns the norm of the gradients of the last step, before they were clipped.
  [[nodiscard]] double norm() const { return norm_; }
  [[nodiscard]] Model& model() { return model_; }

 private:
  static Config checked(const Config& config, const Groups& groups) {
    check(config, groups);
    return config;
  }

  Config config_;
  Groups& groups_;
  Text text_;
  Model model_;
  Pipeline pipeline_;
  std::int64_t steps_ = 0;
  double norm_ = 0;
};
