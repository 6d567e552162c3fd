// SPDX-License-Identifier: BSD-3-Clause
// The tensors that checkpoints and KeptTensors store: names, places, and the memory of this rank.
#pragma once

#include <string>

#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/transfer/placement.hpp"

namespace rankmesh::exchange {

/// A tensor that is saved in a checkpoint or kept in memory.
struct SavedTensor {
  std::string name;       ///< The name. No two tensors have the same name.
  TensorPlacement place;  ///< Where its elements are. Partial sums are added up.
  TensorSource source{};  ///< This rank's part.
};

/// A tensor that is loaded from a checkpoint or restored from memory.
struct LoadedTensor {
  std::string name;       ///< The name under which it was saved.
  TensorPlacement place;  ///< Where its elements go. Its type may differ from the saved one.
  TensorTarget target{};  ///< This rank's part.
};

}  // namespace rankmesh::exchange
