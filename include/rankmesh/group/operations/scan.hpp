// SPDX-License-Identifier: BSD-3-Clause
// Reduces the values of the members up to each member.
#pragma once

#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/prefix_forms.hpp"

namespace rankmesh {

/// scan() combines the values of the members 0 to k for member k. Values are in host memory. They
/// are combined in group order, so a function need not be commutative. Collective over the group.
///
/// `reduction` is any ReduceOp except avg (for complex numbers, sum or prod), or a function
/// `T f(const T& left, const T& right)`; see "Rules of the operations" in docs/programs.md.
/// @throws UsageError if `reduction` is avg, or if it cannot combine complex numbers.
template <bool forms_only = false>
class Scan : public detail::PrefixForms<Operation::scan> {
 public:
  /// Combines the values element by element, in place.
  template <WritableHostMemory M, ScanReduction<ValueOf<M>> R = ReduceOp>
    requires detail::is_borrowed<M>
  void scan(M&& values, R&& reduction = ReduceOp::sum) {
    prefix(values, reduction);
  }
  /// Does the same for a container that is moved into the call. Returns the container.
  template <WritableHostMemory M, ScanReduction<ValueOf<M>> R = ReduceOp>
    requires(!detail::is_borrowed<M>)
  [[nodiscard]] std::remove_cvref_t<M> scan(M&& values, R&& reduction = ReduceOp::sum) {
    scan(values, reduction);
    return std::forward<M>(values);
  }
  /// Does the same for one value, which is changed and returned.
  template <ReducibleVariable T>
  T scan(T& value, ReduceOp op = ReduceOp::sum) {
    scan(detail::one(value), op);
    return value;
  }
  /// Does the same for a constant, or with a function of the program. Returns the result; `value`
  /// does not change.
  template <Value T, ScanReduction<T> R = ReduceOp>
  [[nodiscard]] T scan(const T& value, R&& reduction = ReduceOp::sum) {
    T copy = value;
    scan(detail::one(copy), reduction);
    return copy;
  }
  /// Starts scan(); returns a Work. The memory must stay valid until it is complete.
  template <WritableHostMemory M, ScanReduction<ValueOf<M>> R = ReduceOp>
  [[nodiscard]] WorkOn<M> scan_async(M&& values, R&& reduction = ReduceOp::sum) {
    return start_prefix(std::forward<M>(values), reduction);
  }

  RANKMESH_REFUSE_OTHERS(Scan, scan)
};

}  // namespace rankmesh
