// SPDX-License-Identifier: BSD-3-Clause
// Descriptors of calls, which the members of a group compare and which are recorded.
#pragma once

#include <cstdint>
#include <numeric>

#include "rankmesh/base/call_descriptor.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Returns the descriptor of a call with equal blocks along the first axis and without a user's
/// reduction. Local.
/// @param operation  call.operation; a parameter, because the compiler may know it.
[[gnu::always_inline]] inline CallDescriptor describe_plain(const Call& call, Operation operation) {
  CallDescriptor descriptor;
  descriptor.kind = static_cast<std::uint64_t>(operation);
  descriptor.detail = static_cast<std::uint64_t>(call.name_index) << 48;
  if (!has_data(operation)) return descriptor;
  const bool of_out = counts_output(operation);
  descriptor.count = of_out ? call.out.count : call.in.count;
  const DataType type = of_out ? call.out.type : call.in.type;
  descriptor.kind |= static_cast<std::uint64_t>(type) << 8;
  if (reduces(operation)) descriptor.kind |= static_cast<std::uint64_t>(call.reduction) << 16;
  if (has_root(operation)) descriptor.kind |= static_cast<std::uint64_t>(call.root.value()) << 32;
  // MPI allows these operations in place only if all members do it.
  const OperationFacts& facts = facts_of(operation);
  if (facts.in_place == InPlace::same && facts.awaited == Awaited::all &&
      call.in.data == call.out.data && call.in.count != 0)
    descriptor.kind |= CallDescriptor::in_place;
  return descriptor;
}

/// Returns the descriptor of a call. Local.
inline CallDescriptor describe(const Call& call, Operation operation) {
  CallDescriptor descriptor = describe_plain(call, operation);
  if (call.has_blocks()) {
    descriptor.kind |= CallDescriptor::blocks;
    // There may be gaps between the blocks that this rank sends.
    if (operation == Operation::all_to_all && call.in_blocks != nullptr)
      descriptor.count = std::accumulate(call.in_blocks->counts().begin(),
                                         call.in_blocks->counts().end(), std::int64_t{0});
  }
  if (call.rows != 1) {
    descriptor.kind |= CallDescriptor::along_axis;
    descriptor.detail |= static_cast<std::uint64_t>(call.rows);
  } else {
    descriptor.detail |= static_cast<std::uint64_t>(call.bucket);
  }
  if (call.user != nullptr) {
    descriptor.kind |= CallDescriptor::user;
    descriptor.detail |= call.user->element_bytes();
    descriptor.kind &= ~(std::uint64_t{0xff} << 8);
    descriptor.kind |= static_cast<std::uint64_t>(call.user->type()) << 8;
    if (call.user->commutative() == Commutative::yes)
      descriptor.kind |= CallDescriptor::commutative;
  }
  return descriptor;
}

/// Returns the descriptor of a message between two members. Local.
inline CallDescriptor describe_message(const Call& call) {
  const bool sends = call.operation != Operation::recv;
  const RankInGroup peer = sends ? call.destination : call.source;
  CallDescriptor descriptor;
  descriptor.kind = static_cast<std::uint64_t>(call.operation) |
                    static_cast<std::uint64_t>(sends ? call.in.type : call.out.type) << 8 |
                    static_cast<std::uint64_t>(peer.value()) << 32;
  descriptor.detail = static_cast<std::uint64_t>(call.name_index) << 48 |
                      (static_cast<std::uint64_t>(call.tag) & 0xffff) |
                      static_cast<std::uint64_t>(call.source.value()) << 16;
  descriptor.count = sends ? call.in.count : call.out.count;
  return descriptor;
}

/// Returns the descriptor that is recorded. If a call is not compared on the fast path, the members
/// also compare this descriptor. It describes the call of the program, and whether it is on device
/// memory. Local.
[[nodiscard]] CallDescriptor describe_completely(const Call& call);

}  // namespace rankmesh::detail
