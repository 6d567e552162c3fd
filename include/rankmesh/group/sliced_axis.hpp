// SPDX-License-Identifier: BSD-3-Clause
// An axis of an array that is divided into parts of different lengths.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/slice.hpp"
#include "rankmesh/transport/blocks.hpp"

namespace rankmesh {

/// Describes how the members divide one axis of a row-major array. Member k has those elements
/// whose index along this axis is in part k. The shape is the shape of the whole array. Use Axis if
/// all parts have the same length. A SlicedAxis can be passed wherever an operation accepts Blocks.
/// Unless the parts are contiguous in the array, they are copied, which is possible only in host
/// memory.
class RANKMESH_API SlicedAxis : public Blocks {
 public:
  /// Divides the axis into parts of the given lengths.
  /// @param shape    The lengths of the whole array. The axis with the largest stride comes first.
  /// @param axis     A number from 0 to shape.size()-1. Negative numbers count from the end.
  /// @param lengths  One length per member; together they are as long as the axis.
  /// @throws UsageError if the shape does not have this axis, if a length is negative, or if the
  /// lengths do not add up to the length of the axis.
  SlicedAxis(std::span<const std::int64_t> shape, std::int64_t axis, const Blocks& lengths);
  /// Does the same for a list of sizes in braces.
  SlicedAxis(std::initializer_list<std::int64_t> shape, std::int64_t axis, const Blocks& lengths)
      : SlicedAxis{std::span{shape.begin(), shape.size()}, axis, lengths} {}
  /// Divides the axis evenly over a number of members; see Slice.
  SlicedAxis(std::span<const std::int64_t> shape, std::int64_t axis, std::int64_t members);
  /// Does the same for a list of sizes in braces.
  SlicedAxis(std::initializer_list<std::int64_t> shape, std::int64_t axis, std::int64_t members)
      : SlicedAxis{std::span{shape.begin(), shape.size()}, axis, members} {}
  /// Divides the axis evenly over the members of a group.
  template <GroupLike G>
  SlicedAxis(std::span<const std::int64_t> shape, std::int64_t axis, const G& group)
      : SlicedAxis{shape, axis, group.size()} {}
  /// Does the same for a list of sizes in braces.
  template <GroupLike G>
  SlicedAxis(std::initializer_list<std::int64_t> shape, std::int64_t axis, const G& group)
      : SlicedAxis{std::span{shape.begin(), shape.size()}, axis, group.size()} {}

  /// Refuses other orders of the arguments, at compile time.
  template <GroupLike G>
  RANKMESH_REFUSE("the axis comes before the group: write SlicedAxis{shape, axis, group}")
  SlicedAxis(std::initializer_list<std::int64_t> shape, const G& group, std::int64_t axis)
      : SlicedAxis{shape, axis, group} {}
  /// Refuses a shape without braces, at compile time.
  template <class... A>
    requires(sizeof...(A) >= 2)
  RANKMESH_REFUSE("the shape is a list: write SlicedAxis{{rows, columns}, axis, group}")
      SlicedAxis(std::int64_t rows, std::int64_t columns, const A&...)
      : SlicedAxis{{rows, columns}, 0, std::int64_t{1}} {}

  /// Returns the number of elements of the whole array.
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  /// Returns whether the members' blocks are contiguous in the whole array, so that nothing must be
  /// copied.
  [[nodiscard]] bool is_contiguous() const { return rows() <= 1; }

 private:
  std::int64_t elements_;
};

}  // namespace rankmesh
