// SPDX-License-Identifier: BSD-3-Clause
// Trains the model step by step.
#pragma once

#include <string>

#include "model.hpp"
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

  /// Returns the number of steps that the model has been trained.
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Says that the model was trained by another job. The next step takes the text that follows.
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// Returns the norm of the gradients of the last step, before they were clipped.
  [[nodiscard]] double norm() const { return norm_; }
  [[nodiscard]] Model& model() { return model_; }
  /// Returns the most bytes that this rank has kept for backward passes.
  [[nodiscard]] std::int64_t most_kept() const { return pipeline_.most_kept(); }
  [[nodiscard]] const Config& config() const { return config_; }

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
