// SPDX-License-Identifier: BSD-3-Clause
// The elements that a sender and a receiver have in common, as blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/transfer/plan.hpp"
#include "transfer/detail/axis_overlap.hpp"

namespace rankmesh::detail {

/// One axis of a sender and of a receiver.
struct CommonAxis {
  const AxisClass* source;
  const AxisShare* holder;
  const AxisClass* target;
  const AxisShare* receiver;
  std::int64_t count;  ///< the number of common indices of the two classes
};

/// Appends blocks for the common elements number `begin` to `end`. They are numbered in row-major
/// order of their indices.
void append_blocks(std::span<const CommonAxis> axes, std::int64_t begin, std::int64_t end,
                   std::vector<TransferBlock>& blocks);

}  // namespace rankmesh::detail
