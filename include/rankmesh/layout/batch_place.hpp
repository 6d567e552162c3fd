// SPDX-License-Identifier: BSD-3-Clause
// The place of a family's operations in a batch.
#pragma once

#include <compare>

namespace rankmesh {

/// Orders the operations of a batch between families: a lower place is issued first.
/// It depends on the plan alone, so all ranks issue the same order. Operations with equal places
/// keep the order of their calls.
struct BatchPlace {
  int priority = 0;  ///< GroupOptions::priority of the family; lower runs first
  /// 0 for tp and every family without a turn of its own, 1 for pp, 2 for dp. A family of a grid
  /// has the turn of its name without the grid's prefix: `encoder.dp` has the turn of `dp`.
  int turn = 0;
  friend auto operator<=>(const BatchPlace&, const BatchPlace&) = default;
};

}  // namespace rankmesh
