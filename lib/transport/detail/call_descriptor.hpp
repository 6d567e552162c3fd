// SPDX-License-Identifier: BSD-3-Clause
// What the members of a group compare of their calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Describes a collective call in two words and a count. The members of a group publish their
/// descriptors and compare them before the call does anything. Nothing is hashed or cut off, so a
/// rank can print the call of another rank without asking it.
struct CallDescriptor {
  /// Bits of `kind` that say how the call passes its buffers.
  enum Form : std::uint64_t {
    in_place = 1U << 24,    ///< input and output are the same memory
    blocks = 1U << 25,      ///< a v-form: the blocks have different sizes
    along_axis = 1U << 26,  ///< blocks along an axis other than the first
    user = 1U << 27,        ///< a reduction of the program
    symmetric = 1U << 28,   ///< the operation works directly on symmetric memory
    on_device = 1U << 29,   ///< the buffers are in device memory
  };

  /// Bits 0-7: operation; 8-15: element type; 16-23: reduction; 24-31: Form; 32-63: root.
  std::uint64_t kind = 0;
  /// Bits 0-47: the rows of a block along an axis, or the bytes of an element that a user's
  /// reduction combines; 48-63: Call::family.
  std::uint64_t detail = 0;

  [[nodiscard]] Operation operation() const { return static_cast<Operation>(kind & 0xff); }
  [[nodiscard]] DataType type() const { return static_cast<DataType>(kind >> 8 & 0xff); }
  [[nodiscard]] ReduceOp reduction() const { return static_cast<ReduceOp>(kind >> 16 & 0xff); }
  [[nodiscard]] bool has(Form form) const { return (kind & form) != 0; }
  [[nodiscard]] std::uint64_t root() const { return kind >> 32; }
  /// Returns the rows of a block, or the bytes of an element.
  [[nodiscard]] std::int64_t rows_or_bytes() const {
    return static_cast<std::int64_t>(detail & 0xffffffffffff);
  }
  [[nodiscard]] std::size_t family() const { return static_cast<std::size_t>(detail >> 48); }
  /// Elements of one block; for a user's reduction bytes. Members of a v-form pass different
  /// counts.
  std::int64_t count = 0;

  friend bool operator==(const CallDescriptor&, const CallDescriptor&) = default;
  /// Returns whether two members' calls belong together.
  [[nodiscard]] bool matches(const CallDescriptor& other) const {
    return kind == other.kind && detail == other.detail && (count == other.count || has(blocks));
  }
};

/// Returns the buffer whose elements the descriptor counts: the one that is a single block on every
/// member.
[[gnu::always_inline]] inline bool counts_output(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce_scatter ||
         operation == Operation::scatter;
}

/// Returns the descriptor of a call with equal blocks along the first axis and without a user's
/// reduction. Local.
/// @param operation  call.operation; a parameter, because the compiler may know it.
[[gnu::always_inline]] inline CallDescriptor describe_plain(const Call& call, Operation operation) {
  CallDescriptor descriptor;
  descriptor.kind = static_cast<std::uint64_t>(operation);
  descriptor.detail = static_cast<std::uint64_t>(call.family) << 48;
  if (operation == Operation::barrier) return descriptor;
  const bool of_out = counts_output(operation);
  descriptor.count = of_out ? call.out.count : call.in.count;
  const DataType type = of_out ? call.out.type : call.in.type;
  descriptor.kind |= static_cast<std::uint64_t>(type) << 8;
  if (reduces(operation)) descriptor.kind |= static_cast<std::uint64_t>(call.reduction) << 16;
  if (operation == Operation::broadcast || operation == Operation::reduce ||
      operation == Operation::gather || operation == Operation::scatter)
    descriptor.kind |= static_cast<std::uint64_t>(call.root.value()) << 32;
  if ((operation == Operation::all_reduce || operation == Operation::all_to_all) &&
      call.in.data == call.out.data && call.in.count != 0)
    descriptor.kind |= CallDescriptor::in_place;
  return descriptor;
}

/// Returns the descriptor of a call. Local.
inline CallDescriptor describe(const Call& call, Operation operation) {
  CallDescriptor descriptor = describe_plain(call, operation);
  if (call.has_blocks()) descriptor.kind |= CallDescriptor::blocks;
  if (call.rows != 1) {
    descriptor.kind |= CallDescriptor::along_axis;
    descriptor.detail |= static_cast<std::uint64_t>(call.rows);
  }
  if (call.user != nullptr) {
    descriptor.kind |= CallDescriptor::user;
    descriptor.detail |= call.user->element_bytes();
  }
  return descriptor;
}

/// Returns what the members compare of a call that is not compared on the fast path: the call of
/// the program, and whether it is on device memory. Local.
[[nodiscard]] CallDescriptor describe_completely(const Call& call);

/// Returns a call in the words of the program: `tp.all_reduce(12 x float32, sum)`.
/// @param group   The name of the coordinator.
/// @param counts  The counts of a v-form as text; empty for other calls.
[[nodiscard]] std::string to_string(const CallDescriptor& descriptor, const std::string& group,
                                    const std::string& counts = {});

}  // namespace rankmesh::detail
