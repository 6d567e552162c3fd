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

/// Returns whether a call on ordinary host memory is valid, in a few instructions. The call must
/// have equal blocks along the first axis, one type and no user's reduction. If it returns false,
/// check_call() must check the call, which may still be valid.
template <Operation operation>
[[gnu::always_inline]] inline bool is_valid_fast(const Call& call, RankInGroup self,
                                                 std::int64_t size) {
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
  const auto is_tag = [&] {
    return static_cast<unsigned>(call.tag) <= static_cast<unsigned>(max_tag);
  };
  switch (operation) {
    case Operation::barrier:
      return true;
    case Operation::broadcast:
      return is_member(call.root) && exists(out);
    case Operation::all_reduce:
      return both_exist() && in.count == out.count && (begins(0) || is_apart());
    case Operation::reduce:
      return is_member(call.root) && exists(in) &&
             (call.root != self ||
              (exists(out) && in.count == out.count && (begins(0) || is_apart())));
    case Operation::all_gather:
      return both_exist() && out.count == size * in.count &&
             (is_apart() || begins(self.value() * in.count));
    case Operation::gather:
      return is_member(call.root) && exists(in) &&
             (call.root != self || (exists(out) && out.count == size * in.count &&
                                    (is_apart() || begins(self.value() * in.count))));
    case Operation::reduce_scatter:
      return both_exist() && in.count == size * out.count && is_apart();
    case Operation::scatter:
      return is_member(call.root) && exists(out) &&
             (call.root != self || (exists(in) && in.count == size * out.count &&
                                    (is_apart() || begins(-self.value() * out.count))));
    case Operation::all_to_all:
      return both_exist() && in.count == out.count && in.count % size == 0 &&
             (begins(0) || is_apart());
    case Operation::send:
      return exists(in) && is_member(call.destination) && call.destination != self && is_tag();
    case Operation::recv:
      return exists(out) && is_member(call.source) && call.source != self && is_tag();
    case Operation::send_recv:
      return both_exist() && is_member(call.destination) && is_member(call.source) && is_tag() &&
             call.destination != self && call.source != self && is_apart();
  }
  return false;
}

inline bool is_on_device(const Call& call) {
  return call.in.kind == MemoryKind::device || call.out.kind == MemoryKind::device;
}

}  // namespace rankmesh::detail
