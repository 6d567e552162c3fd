// SPDX-License-Identifier: BSD-3-Clause
// One call of a program, in a form that ranks compare, record and print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rankmesh/base/array_shape.hpp"
#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// Describes a call in two words and a count. The members of a group publish the descriptors of
/// their collectives and compare them before the call is carried out. Every rank also records the
/// descriptors of its calls. No field is hashed or truncated. Therefore a rank that reads the
/// descriptor of another rank can print the call of that rank without a further message.
struct CallDescriptor {
  /// Bits of `kind` that say how the call passes its buffers.
  enum Form : std::uint64_t {
    in_place = 1U << 24,     ///< input and output are the same memory
    blocks = 1U << 25,       ///< a v-form: the blocks have different sizes
    along_axis = 1U << 26,   ///< blocks along an axis other than the first
    user = 1U << 27,         ///< a reduction of the program
    symmetric = 1U << 28,    ///< the operation works directly on symmetric memory
    on_device = 1U << 29,    ///< the buffers are in device memory
    meeting = 1U << 30,      ///< the members only compare the call; MPI or NCCL carries it out
    commutative = 1U << 31,  ///< a reduction of the program that may combine in any order
  };

  /// This word holds:
  /// - bits 0 to 7: the operation
  /// - bits 8 to 15: the element type
  /// - bits 16 to 23: the reduction
  /// - bits 24 to 31: the Form
  /// - bits 32 to 63: the root, or the other member of a message (of a send_recv: the destination)
  std::uint64_t kind = 0;
  /// This word holds:
  /// - bits 0 to 47 of a collective: the rows of a block along an axis, or the bytes of an element
  ///   that a user's reduction combines; in all other calls, Call::bucket
  /// - bits 0 to 15 of a message: the tag
  /// - bits 16 to 47 of a message: the source
  /// - bits 48 to 63: Call::name_index, whose upper two bits are the order of an array
  std::uint64_t detail = 0;

  /// Returns the operation.
  [[nodiscard]] Operation operation() const { return static_cast<Operation>(kind & 0xff); }
  /// Returns the element type.
  [[nodiscard]] DataType type() const { return static_cast<DataType>(kind >> 8 & 0xff); }
  /// Returns the reduction.
  [[nodiscard]] ReduceOp reduction() const { return static_cast<ReduceOp>(kind >> 16 & 0xff); }
  /// Returns whether the call has a form.
  [[nodiscard]] bool has(Form form) const { return (kind & form) != 0; }
  /// Returns the root, as a rank in the group.
  [[nodiscard]] std::uint64_t root() const { return kind >> 32; }
  /// Returns the rows of a block, or the bytes of an element.
  [[nodiscard]] std::int64_t rows_or_bytes() const {
    return static_cast<std::int64_t>(detail & 0xffffffffffff);
  }
  /// Returns Call::bucket.
  [[nodiscard]] std::int64_t bucket() const {
    return has(along_axis) || has(user) ? 0 : rows_or_bytes();
  }
  /// Returns the other member of a message. For send_recv, this is the member that receives.
  [[nodiscard]] std::uint64_t peer() const { return root(); }
  /// Returns the member from which recv and send_recv receive.
  [[nodiscard]] std::uint64_t source() const { return detail >> 16 & 0xffffffff; }
  /// Returns the tag of a message.
  [[nodiscard]] int tag() const { return static_cast<int>(detail & 0xffff); }
  /// Returns the name of the group in the call, as an index of Group::names.
  [[nodiscard]] std::size_t name_index() const {
    return static_cast<std::size_t>(detail >> 48 & 0x3fff);
  }
  /// Returns the order of the array that the call moves.
  [[nodiscard]] ArrayOrder order() const { return static_cast<ArrayOrder>(detail >> 62); }
  /// The number of elements of one block. For a user's reduction, the number of bytes instead. In
  /// v-forms, the members pass different counts. The count of all_to_all_v is the sum of all blocks
  /// that the member sends.
  std::int64_t count = 0;

  /// Returns whether all fields are equal.
  friend bool operator==(const CallDescriptor&, const CallDescriptor&) = default;
  /// Returns whether the call of another member matches this call.
  [[nodiscard]] bool matches(const CallDescriptor& other) const {
    return kind == other.kind && (detail == other.detail || differs_in_no_order(other)) &&
           (count == other.count || has(blocks));
  }

 private:
  // Whether only one of two members passes an array; the other one passes flat memory.
  [[nodiscard]] bool differs_in_no_order(const CallDescriptor& other) const {
    return (detail ^ other.detail) >> 62 << 62 == (detail ^ other.detail) &&
           (order() == ArrayOrder::any || other.order() == ArrayOrder::any);
  }
};

/// Returns a call in the words of the program, for example `tp.all_reduce(12 x float32, sum)` or
/// `pp.send(8 x int32, to member 1, tag 3)`.
/// @param group   The name of the coordinator.
/// @param counts  The counts of a v-form as text; empty for other calls.
[[nodiscard]] RANKMESH_API std::string to_string(const CallDescriptor& descriptor,
                                                 const std::string& group,
                                                 const std::string& counts = {});

}  // namespace rankmesh
