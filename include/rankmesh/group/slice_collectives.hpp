// SPDX-License-Identifier: BSD-3-Clause
// Collectives with parts of different lengths along any axis of a row-major array.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "rankmesh/group/block_collectives.hpp"
#include "rankmesh/group/sliced_axis.hpp"

namespace rankmesh {

/// Adds the collectives whose blocks are parts of an axis, with different lengths; see SlicedAxis.
/// Along the first axis, nothing is copied, and device memory is accepted. Along other axes, each
/// rank that has the whole array copies it once, needs scratch memory of the same size, and must
/// have the array in host memory.
class SliceCollectives : public BlockCollectives {
 public:
  using BlockCollectives::all_gather_v;
  using BlockCollectives::gather_v;
  using BlockCollectives::reduce_scatter_v;
  using BlockCollectives::scatter_v;

  /// Joins the members' parts along the axis. All members get the whole array.
  /// @param in   This member's part of the array, contiguous.
  /// @param out  The whole array.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather_v(In&& in, Out&& out, const SlicedAxis& axis, StreamRef stream = {}) {
    joined(out, axis, true, [&](auto& blocks_of) {
      run(calls::blocks_of_out(Operation::all_gather, in, blocks_of, scaled<Out>(axis), {},
                               stream));
    });
  }
  /// Joins the members' parts along the axis at the root. `out` is ignored on all other members.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather_v(In&& in, Out&& out, const SlicedAxis& axis, RankInGroup root,
                StreamRef stream = {}) {
    joined(out, axis, self_ == root, [&](auto& blocks_of) {
      run(calls::blocks_of_out(Operation::gather, in, blocks_of, scaled<Out>(axis), root, stream));
    });
  }
  /// Divides the root's array along the axis, and sends part k to member k. `in` is ignored on all
  /// other members.
  /// @param out  This member's part of the array, contiguous.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter_v(In&& in, Out&& out, const SlicedAxis& axis, RankInGroup root,
                 StreamRef stream = {}) {
    split(in, axis, self_ == root, [&](auto& blocks_of) {
      run(calls::blocks_of_in(Operation::scatter, blocks_of, out, scaled<In>(axis), root,
                              ReduceOp::sum, stream));
    });
  }
  /// Reduces the members' arrays element by element. Member k gets part k of the result.
  /// @param in   A whole array.
  /// @param out  This member's part of the array, contiguous.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  void reduce_scatter_v(In&& in, Out&& out, const SlicedAxis& axis, ReduceOp op = ReduceOp::sum,
                        StreamRef stream = {}) {
    split(in, axis, true, [&](auto& blocks_of) {
      run(calls::blocks_of_in(Operation::reduce_scatter, blocks_of, out, scaled<In>(axis), {}, op,
                              stream));
    });
  }

 protected:
  using BlockCollectives::BlockCollectives;
  ~SliceCollectives() = default;

 private:
  // Returns the blocks in the units in which buffer_of() counts. The axis counts innermost
  // elements.
  template <class M>
  static Blocks scaled(const SlicedAxis& axis) {
    return detail::scaled(axis.blocks(), detail::units_per_leaf<M>);
  }
  template <class M>
  static constexpr std::size_t bytes_of_element = sizeof(LeafOf<ElementOf<M>>);

  // Calls `operation` with memory in which the blocks follow each other, and copies them to `out`.
  template <class Out, class Run>
  void joined(Out& out, const SlicedAxis& axis, bool has_whole, Run&& operation) {
    if (axis.is_contiguous() || !has_whole) return operation(out);
    if constexpr (DeviceMemory<Out>) {
      axis.refuse_device();
    } else {
      axis.require_elements(buffer_of(out).count, detail::units_per_leaf<Out>);
      const auto elements = static_cast<std::size_t>(axis.elements());
      const auto memory = std::make_unique<LeafOf<ElementOf<Out>>[]>(elements);
      std::span scratch{memory.get(), elements};
      operation(scratch);
      axis.join(reinterpret_cast<const std::byte*>(scratch.data()), buffer_of(out).data,
                bytes_of_element<Out>);
    }
  }
  // Calls `operation` with memory in which the blocks of `in` follow each other.
  template <class In, class Run>
  void split(In& in, const SlicedAxis& axis, bool has_whole, Run&& operation) {
    if (axis.is_contiguous() || !has_whole) return operation(in);
    if constexpr (DeviceMemory<In>) {
      axis.refuse_device();
    } else {
      axis.require_elements(buffer_of(in).count, detail::units_per_leaf<In>);
      const auto elements = static_cast<std::size_t>(axis.elements());
      const auto memory = std::make_unique<LeafOf<ElementOf<In>>[]>(elements);
      std::span scratch{memory.get(), elements};
      axis.split(calls::input(in).data, reinterpret_cast<std::byte*>(scratch.data()),
                 bytes_of_element<In>);
      operation(scratch);
    }
  }
};

}  // namespace rankmesh
