// SPDX-License-Identifier: BSD-3-Clause
// The two programs that gpt_speed.cpp compares.
#pragma once

#include <cstdint>
#include <memory>

/// A training that goes on.
class Training {
 public:
  Training() = default;
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  virtual ~Training() = default;
  /// Trains for some steps. Returns the loss of the last one.
  virtual double run(std::int64_t steps) = 0;
  /// Closes the mesh.
  virtual void close() = 0;
};

/// Begin a training on all ranks with the arguments of examples/gpt.
namespace with_rankmesh {
std::unique_ptr<Training> begin(int argc, char** argv);
}
namespace with_mpi {
std::unique_ptr<Training> begin(int argc, char** argv);
}
