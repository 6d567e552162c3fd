// SPDX-License-Identifier: BSD-3-Clause
// The place of a family's operations in a batch.
#pragma once

#include <compare>

namespace rankmesh {

/// Orders the operations of different families in a batch. An operation with a lower place is
/// issued before an operation with a higher place. The place depends only on the plan, so all ranks
/// issue the operations in the same order. Operations with equal places are issued in the order of
/// their calls. NCCL keeps this order only between different priorities; see NcclGroup.
struct BatchPlace {
  int priority = 0;  ///< GroupOptions::priority of the family, which is compared first
  /// The turn decides between operations of equal priority. It is 1 for pp, 2 for dp, and 0 for tp
  /// and all other families. The prefix of a grid has no influence: `encoder.dp` has the same turn
  /// as `dp`.
  int turn = 0;
  /// Compares first the priorities and then the turns.
  friend auto operator<=>(const BatchPlace&, const BatchPlace&) = default;
};

}  // namespace rankmesh
