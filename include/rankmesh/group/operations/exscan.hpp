// SPDX-License-Identifier: BSD-3-Clause
// Reduces the values of the members before each member.
#pragma once

#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/prefix_forms.hpp"

namespace rankmesh {

/// exscan() combines the values of the members 0 to k-1 for member k. The first member has no
/// member before it, and gets zeros, or with a function values `T{}`. For example, `const auto
/// offset = tp.exscan(count)` gives the position at which this member's elements begin. The rules
/// of scan() apply. Collective over the group.
template <bool forms_only = false>
class Exscan : public detail::PrefixForms<Operation::exscan> {
 public:
  /// Combines the values element by element, in place.
  template <WritableHostMemory M, ScanReduction<ValueOf<M>> R = ReduceOp>
    requires detail::is_borrowed<M>
  void exscan(M&& values, R&& reduction = ReduceOp::sum) {
    prefix(values, reduction);
  }
  /// Does the same for a container that is moved into the call. Returns the container.
  template <WritableHostMemory M, ScanReduction<ValueOf<M>> R = ReduceOp>
    requires(!detail::is_borrowed<M>)
  [[nodiscard]] std::remove_cvref_t<M> exscan(M&& values, R&& reduction = ReduceOp::sum) {
    exscan(values, reduction);
    return std::forward<M>(values);
  }
  /// Does the same for one value, which is changed and returned.
  template <ReducibleVariable T>
  T exscan(T& value, ReduceOp op = ReduceOp::sum) {
    exscan(detail::one(value), op);
    return value;
  }
  /// Does the same for a constant, or with a function of the program. Returns the result; `value`
  /// does not change.
  template <Value T, ScanReduction<T> R = ReduceOp>
  [[nodiscard]] T exscan(const T& value, R&& reduction = ReduceOp::sum) {
    T copy = value;
    exscan(detail::one(copy), reduction);
    return copy;
  }
  /// Starts exscan(); returns a Work. The memory must stay valid until it is complete.
  template <WritableHostMemory M, ScanReduction<ValueOf<M>> R = ReduceOp>
  [[nodiscard]] WorkOn<M> exscan_async(M&& values, R&& reduction = ReduceOp::sum) {
    return start_prefix(std::forward<M>(values), reduction);
  }

  RANKMESH_REFUSE_OTHERS(Exscan, exscan)
};

}  // namespace rankmesh
