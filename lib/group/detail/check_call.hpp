// SPDX-License-Identifier: BSD-3-Clause
// Checks the contract of every operation before a transport gets it.
#pragma once

#include <cstdint>
#include <string_view>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// The highest tag that programs may use. rankmesh uses higher ones for its own messages.
inline constexpr int max_tag = 16383;
/// The largest number of elements of a buffer. Above it, the number of bytes of a group's blocks
/// could overflow 64 bits.
inline constexpr std::uint64_t largest_buffer = (std::uint64_t{1} << 48) - 1;

/// Checks the counts, types, ranks, tag and overlap of a call. Local.
/// @throws UsageError if the call is not valid; the error names the group, the operation and the
/// problem.
void check_call(const Call& call, std::string_view group, RankInGroup self, std::int64_t size);

/// Checks a v-form as far as one member can before the members exchange the sizes of the blocks:
/// the memory of the input, the root, and the blocks of the input, if this member has one. Local.
/// @param of_arrays  Whether the elements that the Blocks count are arrays. These have no
///                   SlicedAxis, whose blocks need not consist of whole elements.
/// @throws UsageError, as check_call() does.
void check_sizes(const Call& call, bool of_arrays, std::string_view group, RankInGroup self,
                 std::int64_t size);

/// Returns whether a call on ordinary host memory is valid, in a few instructions. The call must
/// have equal blocks along the first axis, one type and no user's reduction. If it returns false,
/// check_call() must check the call, which may still be valid.
template <Operation operation>
[[gnu::always_inline]] inline bool is_valid_fast(const Call& call, RankInGroup self,
                                                 std::int64_t size) {
  constexpr OperationFacts facts = facts_of(operation);
  constexpr bool has_in = facts.in != Extent::none;
  constexpr bool has_out = facts.out != Extent::none;
  const auto is_member = [&](RankInGroup rank) {
    return static_cast<std::uint64_t>(rank.value()) < static_cast<std::uint64_t>(size);
  };
  const ConstBuffer& in = call.in;
  const Buffer& out = call.out;
  const auto width = static_cast<std::int64_t>(size_of(in.type));
  // Whether the input begins `elements` after the output.
  const auto begins = [&](std::int64_t elements) { return in.data == out.data + elements * width; };
  const auto is_apart = [&] {
    const auto a = reinterpret_cast<std::uintptr_t>(in.data);
    const auto b = reinterpret_cast<std::uintptr_t>(out.data);
    return a + static_cast<std::uintptr_t>(in.count * width) <= b ||
           b + static_cast<std::uintptr_t>(out.count * width) <= a;
  };
  // Whether memory exists. Its bytes must be countable, too.
  const auto exists = [&](const auto& buffer) {
    return buffer.data != nullptr ? static_cast<std::uint64_t>(buffer.count) <= largest_buffer
                                  : buffer.count == 0;
  };
  const auto both_exist = [&] {
    return static_cast<std::uint64_t>(in.count | out.count) <= largest_buffer &&
           (in.data != nullptr || in.count == 0) && (out.data != nullptr || out.count == 0);
  };
  const auto is_peer = [&](RankInGroup rank) { return is_member(rank) && rank != self; };
  const auto counts_fit = [&] {
    if constexpr (gathers(operation)) return out.count == size * in.count;
    if constexpr (scatters(operation)) return in.count == size * out.count;
    return in.count == out.count && (!has_v_form(operation) || in.count % size == 0);
  };
  const auto memory_fits = [&] {
    if constexpr (facts.in_place == InPlace::same) return begins(0) || is_apart();
    if constexpr (facts.in_place == InPlace::block_of_output)
      return is_apart() || begins(self.value() * in.count);
    if constexpr (facts.in_place == InPlace::block_of_input)
      return is_apart() || begins(-self.value() * out.count);
    return is_apart();
  };
  if constexpr (facts.reduces)
    if (call.reduction > ReduceOp::avg) return false;
  if constexpr (!has_data(operation)) {
    return true;
  } else if constexpr (facts.awaited == Awaited::peer) {
    const auto is_tag = [&] {
      return static_cast<unsigned>(call.tag) <= static_cast<unsigned>(max_tag);
    };
    if constexpr (has_in && has_out)
      return both_exist() && is_peer(call.destination) && is_peer(call.source) && is_tag() &&
             is_apart();
    else if constexpr (has_in)
      return exists(in) && is_peer(call.destination) && is_tag();
    else
      return exists(out) && is_peer(call.source) && is_tag();
  } else if constexpr (has_root(operation)) {
    constexpr bool all_have_out = has_output(operation, false);
    if (!is_member(call.root) || !(all_have_out ? exists(out) : exists(in))) return false;
    if constexpr (!has_in || !has_out) return true;
    return call.root != self ||
           ((all_have_out ? exists(in) : exists(out)) && counts_fit() && memory_fits());
  } else {
    if constexpr (facts.awaited == Awaited::earlier)
      if (call.reduction == ReduceOp::avg) return false;
    return both_exist() && counts_fit() && memory_fits();
  }
}

}  // namespace rankmesh::detail
