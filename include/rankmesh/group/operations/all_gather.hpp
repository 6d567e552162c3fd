// SPDX-License-Identifier: BSD-3-Clause
// Concatenates the values of all members on all members.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/returned.hpp"
#include "rankmesh/group/sliced_axis.hpp"

namespace rankmesh {

/// all_gather() concatenates the `in` of all members in group order, or along an axis of an array.
/// All members get the result in `out`, which has size() times as many elements as `in`. Collective
/// over the group.
///
/// In all_gather_v(), the blocks may have different sizes: `blocks` is a
/// rankmesh::Blocks, a SlicedAxis, or a list of counts such as a std::vector. Every member passes
/// the sizes of all blocks, and all members must pass the same sizes. Sizes are counted in elements
/// of the divided buffer. If the buffer is an array of two dimensions, each row counts as one
/// element.
template <bool forms_only = false>
class AllGather : public detail::OperationForms<Operation::all_gather> {
 public:
  /// Concatenates the values.
  template <Memory In, OutputOf<In> Out>
  void all_gather(In&& in, Out&& out, StreamRef stream = {}) {
    run(in, out, {.stream = stream});
  }
  /// Concatenates blocks along an axis.
  /// @param in   This member's block, with the shape of the axis.
  /// @param out  The whole array.
  template <Memory In, OutputOf<In> Out>
  void all_gather(In&& in, Out&& out, const Axis& axis, StreamRef stream = {}) {
    run_any(in, out, {.stream = stream}, &axis);
  }
  /// Concatenates values in host memory, and returns the result.
  template <HostMemory In>
  [[nodiscard]] Returned<In> all_gather(In&& in) {
    return detail::returned<In>(detail::elements_of(in) * issuer().size(),
                                [&](auto out) { all_gather(in, out); });
  }
  /// Returns one value of each member.
  template <Value T>
  [[nodiscard]] std::vector<T> all_gather(const T& value) {
    return all_gather(detail::one(value));
  }
  /// Starts all_gather(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> all_gather_async(In&& in, Out&& out, StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out), {.stream = stream});
  }
  /// Does the same along an axis.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> all_gather_async(In&& in, Out&& out, const Axis& axis,
                                             StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out), {.stream = stream}, &axis);
  }

  /// Copies `in` of member k to block k of `out`.
  template <Memory In, OutputOf<In> Out>
  void all_gather_v(In&& in, Out&& out, const Blocks& blocks, StreamRef stream = {}) {
    const auto& out_blocks = detail::blocks_in<Out>(blocks);
    run_any(in, out, {.out_blocks = &out_blocks, .stream = stream});
  }
  /// Concatenates values in host memory. All members get the values and the sizes. Cost: an
  /// all_gather of 8 bytes per member before the values.
  template <HostMemory In>
  [[nodiscard]] ReturnedBlocks<In> all_gather_v(In&& in) {
    require_sizes<In>(in, {});
    Blocks blocks{counts_of(in, detail::UserFunction::all_gather_v)};
    auto values = detail::returned<In>(detail::total(blocks),
                                       [&](auto out) { all_gather_v(in, out, blocks); });
    return {std::move(values), std::move(blocks)};
  }
  /// Starts all_gather_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> all_gather_v_async(In&& in, Out&& out, const Blocks& blocks,
                                               StreamRef stream = {}) {
    const auto& out_blocks = detail::blocks_in<Out>(blocks);
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.out_blocks = &out_blocks, .stream = stream});
  }

  /// @cond
  // Returns the number of elements of each member, for a function of the program.
  template <class In>
  std::vector<std::int64_t> counts_of(const In& in, detail::UserFunction function) {
    const detail::CalledBy by{issuer(), function};
    return all_gather(static_cast<std::int64_t>(detail::elements_of(in)));
  }
  /// @endcond

  RANKMESH_REFUSE_OTHERS(AllGather, all_gather)
  RANKMESH_REFUSE_OTHERS(AllGather, all_gather_v)
  RANKMESH_REFUSE_BRACES(AllGather, all_gather)
  RANKMESH_REFUSE_BRACES(AllGather, all_gather_async)
  RANKMESH_REFUSE_BRACES_OF_V(AllGather, all_gather_v)
  RANKMESH_REFUSE_BRACES_OF_V(AllGather, all_gather_v_async)
};

}  // namespace rankmesh
