// SPDX-License-Identifier: BSD-3-Clause
// What torch.nn.parallel.DistributedDataParallel does, in C++: torch's Reducer over its process
// group for Gloo.
#pragma once

#include <memory>
#include <vector>

#include <torch/types.h>

#include "rankmesh/group/coordinator.hpp"

class DistributedDataParallel {
 public:
  /// Collective over the group, whose ranks are on one node.
  DistributedDataParallel(rankmesh::GroupCoordinator& group,
                          const std::vector<torch::Tensor>& parameters);
  ~DistributedDataParallel();
  /// Call it before each backward pass, which then averages the gradients.
  void prepare(const torch::Tensor& loss);

 private:
  struct State;
  std::unique_ptr<State> state_;
};
