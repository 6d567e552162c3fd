// SPDX-License-Identifier: BSD-3-Clause
// What the tests of examples/gpt have in common.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../../examples/gpt/trainer.hpp"

/// Trains on all ranks of a communicator, and returns the losses. An error that all ranks find in
/// the calls of the program counts as an infinite loss.
inline std::vector<double> train(MPI_Comm ranks, const std::string& layout, const Config& config,
                                 const std::string& text) {
  Mesh mesh{ranks, complete(layout)};
  std::vector<double> losses;
  try {
    Groups groups{mesh};
    Trainer trainer{config, groups, text};
    while (trainer.steps() < config.steps) losses.push_back(trainer.step());
  } catch (const rankmesh::UsageError& error) {
    if (mesh.rank() == 0) std::printf("%s\n", error.what());
    losses.assign(config.steps, HUGE_VAL);
  }
  mesh.close();
  return losses;
}

/// Trains on this rank alone.
inline std::vector<double> train_alone(Config config, const std::string& text) {
  config.chunks = 1;
  config.zero = 0;
  return train(MPI_COMM_SELF, "dp=1", config, text);
}

/// Returns the largest relative difference of a loss on any rank of the communicator. NaN counts as
/// infinite.
inline double difference(const std::vector<double>& a, const std::vector<double>& b,
                         MPI_Comm ranks) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double relative = std::abs(a[i] / b[i] - 1);
    most = std::isfinite(relative) ? std::max(most, relative) : HUGE_VAL;
  }
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, ranks);
  return most;
}
