// SPDX-License-Identifier: BSD-3-Clause
// Exchanges a block between every two members.
#pragma once

#include <cstdint>
#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/returned.hpp"

namespace rankmesh {

/// all_to_all() sends block k of `in` to member k, and receives block k of `out` from member k.
/// `in` and `out` have the same number of elements, which must be a multiple of size(). Collective
/// over the group.
///
/// In all_to_all_v(), the blocks may have different sizes. A member passes the sizes of the blocks
/// that it sends and receives, as Blocks or as a list of counts such as a std::vector. For the
/// block that member a sends to member b, both members must pass the same size. Sizes are counted
/// in elements. If a buffer is an array of two dimensions, each row counts as one element.
template <bool forms_only = false>
class AllToAll : public detail::OperationForms<Operation::all_to_all> {
 public:
  /// Exchanges blocks of equal sizes.
  template <Memory In, OutputOf<In> Out>
  void all_to_all(In&& in, Out&& out, StreamRef stream = {}) {
    require_equal_blocks<In>(in);
    run(in, out, {.stream = stream});
  }
  /// Exchanges blocks in host memory, and returns those that this member receives, in group order.
  template <HostMemory In>
  [[nodiscard]] Returned<In> all_to_all(In&& in) {
    return detail::returned<In>(detail::elements_of(in), [&](auto out) { all_to_all(in, out); });
  }
  /// Starts all_to_all(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> all_to_all_async(In&& in, Out&& out, StreamRef stream = {}) {
    require_equal_blocks<In>(in);
    return start(std::forward<In>(in), std::forward<Out>(out), {.stream = stream});
  }

  /// Exchanges blocks of different sizes.
  /// @param in_blocks   The blocks to send; block k is sent to member k.
  /// @param out_blocks  The blocks to receive; block k is received from member k.
  template <Memory In, OutputOf<In> Out>
  void all_to_all_v(In&& in, Out&& out, const Blocks& in_blocks, const Blocks& out_blocks,
                    StreamRef stream = {}) {
    const auto& sent = detail::blocks_in<In>(in_blocks);
    const auto& received = detail::blocks_in<Out>(out_blocks);
    run_any(in, out, {.in_blocks = &sent, .out_blocks = &received, .stream = stream});
  }
  /// Exchanges blocks in host memory, and returns those that this member receives, in group order.
  /// Only the sender knows the size of a block. Cost: an all_to_all of 8 bytes per member before
  /// the values.
  template <HostMemory In>
  [[nodiscard]] ReturnedBlocks<In> all_to_all_v(In&& in, const Blocks& in_blocks) {
    require_sizes<In>(in, in_blocks);
    Blocks blocks{[&] {
      const detail::CalledBy by{issuer(), detail::UserFunction::all_to_all_v};
      return all_to_all(in_blocks.counts());
    }()};
    auto values = detail::returned<In>(detail::total(blocks),
                                       [&](auto out) { all_to_all_v(in, out, in_blocks, blocks); });
    return {std::move(values), std::move(blocks)};
  }
  /// Starts all_to_all_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> all_to_all_v_async(In&& in, Out&& out, const Blocks& in_blocks,
                                               const Blocks& out_blocks, StreamRef stream = {}) {
    const auto& sent = detail::blocks_in<In>(in_blocks);
    const auto& received = detail::blocks_in<Out>(out_blocks);
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.in_blocks = &sent, .out_blocks = &received, .stream = stream});
  }

  RANKMESH_REFUSE_OTHERS(AllToAll, all_to_all)
  RANKMESH_REFUSE_OTHERS(AllToAll, all_to_all_v)
  RANKMESH_REFUSE_BRACES(AllToAll, all_to_all)
  RANKMESH_REFUSE_BRACES(AllToAll, all_to_all_async)
  RANKMESH_REFUSE_BRACES_OF_V(AllToAll, all_to_all_v)
  RANKMESH_REFUSE_BRACES_OF_V(AllToAll, all_to_all_v_async)

 private:
  // The later check of the call counts units. It would therefore accept blocks that divide a
  // struct.
  template <class In>
  void require_equal_blocks(In& in) {
    if constexpr (detail::units_of<In> != 1) issuer().require_divisible(detail::elements_of(in));
  }
};

}  // namespace rankmesh
