// SPDX-License-Identifier: BSD-3-Clause
// What the scans have in common.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"

namespace rankmesh {

/// What a scan combines values of T with: a ReduceOp or a function.
template <class R, class T>
concept ScanReduction = (std::same_as<std::remove_cvref_t<R>, ReduceOp> && ReducibleElement<T>) ||
                        ReductionFunction<R, T>;

namespace detail {

/// Runs a scan with a ReduceOp or a function.
template <Operation operation>
class PrefixForms : public OperationForms<operation> {
 protected:
  template <class M, class R>
  void prefix(M& values, R& reduction) {
    if constexpr (!std::same_as<std::remove_cvref_t<R>, ReduceOp>)
      this->run_user(values, values, reduction, Commutative::no);
    else if constexpr (is_complex<ValueOf<M>>)
      reduction == ReduceOp::prod ? this->run_user(values, values, product, Commutative::no)
                                  : this->run(values, {.reduction = reduction});
    else
      this->run(values, {.reduction = reduction});
  }
  template <class M, class R>
  WorkOn<M> start_prefix(M&& values, R& reduction) {
    if constexpr (!std::same_as<std::remove_cvref_t<R>, ReduceOp>)
      return this->start_user(std::forward<M>(values), reduction, Commutative::no);
    else if constexpr (is_complex<ValueOf<M>>)
      return reduction == ReduceOp::prod
                 ? this->start_user(std::forward<M>(values), product, Commutative::no)
                 : this->start(std::forward<M>(values), {.reduction = reduction});
    else
      return this->start(std::forward<M>(values), {.reduction = reduction});
  }

 private:
  // MPI and shared memory know complex numbers as pairs of floats, which have no product.
  static constexpr std::multiplies<> product{};
};

}  // namespace detail

}  // namespace rankmesh
