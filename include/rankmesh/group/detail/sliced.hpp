// SPDX-License-Identifier: BSD-3-Clause
// Runs operations on the members' parts of a sliced axis.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/group/sliced_axis.hpp"

namespace rankmesh::detail {

/// Returns the blocks in the units in which buffer_of() counts. The axis counts innermost elements.
template <class M>
Blocks blocks_in(const SlicedAxis& axis) {
  return scaled(axis.blocks(), units_per_leaf<M>);
}

/// Calls `run` with memory in which the members' blocks follow each other, and copies them to
/// `out`, the whole array, where this member has it.
template <class Out, class Run>
void joined(Out& out, const SlicedAxis& axis, bool has_whole, Run&& run) {
  if (axis.is_contiguous() || !has_whole) return run(out);
  if constexpr (DeviceMemory<Out>) {
    axis.refuse_device();
  } else {
    using Leaf = LeafOf<ElementOf<Out>>;
    axis.require_elements(buffer_of(out).count, units_per_leaf<Out>);
    const auto elements = static_cast<std::size_t>(axis.elements());
    const auto memory = std::make_unique<Leaf[]>(elements);
    std::span scratch{memory.get(), elements};
    run(scratch);
    axis.join(reinterpret_cast<const std::byte*>(scratch.data()), buffer_of(out).data,
              sizeof(Leaf));
  }
}

/// Calls `run` with memory in which the members' blocks of `in`, the whole array, follow each
/// other.
template <class In, class Run>
void split(In& in, const SlicedAxis& axis, bool has_whole, Run&& run) {
  if (axis.is_contiguous() || !has_whole) return run(in);
  if constexpr (DeviceMemory<In>) {
    axis.refuse_device();
  } else {
    using Leaf = LeafOf<ElementOf<In>>;
    axis.require_elements(buffer_of(in).count, units_per_leaf<In>);
    const auto elements = static_cast<std::size_t>(axis.elements());
    const auto memory = std::make_unique<Leaf[]>(elements);
    std::span scratch{memory.get(), elements};
    axis.split(calls::input(in).data, reinterpret_cast<std::byte*>(scratch.data()), sizeof(Leaf));
    run(scratch);
  }
}

}  // namespace rankmesh::detail
