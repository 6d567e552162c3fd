// Blocks along any axis of an array.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "rankmesh/export.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh {

/// Along which axis of a row-major array the members' blocks lie: all_gather and gather concatenate
/// along it, reduce_scatter and scatter split along it. The shape is that of one member's block; in
/// the whole array this axis is size() times as long and the others are the same (vLLM's and
/// torch's `dim`).
///
/// Axis 0 is what these operations do by themselves. Another one costs a copy of the whole array
/// (for a rank that has it) on each side that is not contiguous, and as much scratch memory: on
/// devices allocated and freed in stream order, so that such calls cannot be part of an NcclGroup.
class RANKMESH_API Axis {
 public:
  /// @param axis  0 .. shape.size()-1; negative ones count from the end.
  /// @throws UsageError for another axis or a negative length.
  Axis(std::span<const std::int64_t> shape, std::int64_t axis);
  Axis(std::initializer_list<std::int64_t> shape, std::int64_t axis)
      : Axis{std::span{shape.begin(), shape.size()}, axis} {}

  /// The call along this axis. @throws UsageError where its block is not of this shape.
  [[nodiscard]] Call along(Call call) const;

 private:
  std::int64_t rows_ = 1;      // of everything before the axis
  std::int64_t elements_ = 1;  // of a block
};

}  // namespace rankmesh
