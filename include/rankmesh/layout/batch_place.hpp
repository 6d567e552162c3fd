// SPDX-License-Identifier: BSD-3-Clause
// The place of a family's operations in a batch.
#pragma once

#include <compare>

namespace rankmesh {

/// Orders the operations of different families in a batch: the operation with the lower place is
/// issued first. The place depends only on the plan, so all ranks issue the operations in the same
/// order. Operations with equal places keep the order of their calls.
struct BatchPlace {
  int priority = 0;  ///< GroupOptions::priority of the family; a lower number is issued first
  /// The turn is 0 for tp and for every family that has no other turn, 1 for pp, and 2 for dp. A
  /// family of a grid has the turn of its name without the grid's prefix: `encoder.dp` has the turn
  /// of `dp`.
  int turn = 0;
  friend auto operator<=>(const BatchPlace&, const BatchPlace&) = default;
};

}  // namespace rankmesh
