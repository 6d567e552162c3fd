// SPDX-License-Identifier: BSD-3-Clause
// What the tests of examples/gpt have in common.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "../../examples/gpt/trainer.hpp"

/// Trains on a mesh, and returns the losses.
inline std::vector<double> train(Groups& groups, const Config& config, const std::string& text) {
  Trainer trainer{config, groups, text};
  std::vector<double> losses;
  while (trainer.steps() < config.steps) losses.push_back(trainer.step());
  return losses;
}

/// Trains on this rank alone.
inline std::vector<double> train_alone(Config config, const std::string& text) {
  config.chunks = 1;
  config.zero = 0;
  Mesh mesh{MPI_COMM_SELF, complete("dp=1")};
  std::vector<double> losses;
  {
    Groups groups{mesh};
    losses = train(groups, config, text);
  }
  mesh.close();
  return losses;
}

/// Returns the relative difference of two losses. NaN counts as infinite.
inline double difference(double a, double b) {
  const double relative = std::abs(a / b - 1);
  return std::isfinite(relative) ? relative : HUGE_VAL;
}

/// Returns the largest value of any rank of the communicator.
inline double largest(double value, MPI_Comm ranks) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, ranks);
  return value;
}
