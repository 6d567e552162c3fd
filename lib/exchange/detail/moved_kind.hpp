// SPDX-License-Identifier: BSD-3-Clause
// What tensors that move between the same two places have in common on a rank.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// The dense memory that a rank needs for its elements in one place.
struct NeededMemory {
  std::int64_t count = 0;  ///< The number of elements. With 0, the memory is not used.
  DataType type = DataType::uint8;
  std::vector<std::int64_t> shape{};

  NeededMemory(const TensorPlacement& place, Rank self);
  /// Returns whether the memory is dense, and is all that is needed.
  template <class Byte>
  [[nodiscard]] bool is_met_by(const BasicBuffer<Byte>& memory,
                               const std::vector<std::int64_t>& strides, MemoryKind kind) const {
    return memory.count == count && memory.type == type && memory.kind == kind && strides.empty();
  }
};

/// The types and the local shapes of a tensor on one rank.
class MovedKind {
 public:
  /// @param transfer  One of the tensors.
  /// @throws UsageError if the types cannot be converted.
  MovedKind(const TensorTransfer& transfer, Rank self);

  /// Throws a UsageError unless the memory fits the places and is of this kind. Cheap if it is
  /// dense.
  /// @param transfer  The tensor, for messages.
  void check(const TensorTransfer& transfer, const TensorSource& source, const TensorTarget& target,
             MemoryKind kind) const;

  /// Returns the type of the elements in a message.
  [[nodiscard]] DataType type_in_message(TransferStep step) const {
    return step == TransferStep::forward ? forwarded_type_ : message_type_;
  }
  /// Returns what the memory from which elements are sent in a step must be.
  [[nodiscard]] const NeededMemory& sender(TransferStep step) const {
    return step == TransferStep::forward ? target_ : source_;
  }
  [[nodiscard]] const NeededMemory& source() const { return source_; }
  [[nodiscard]] const NeededMemory& target() const { return target_; }
  /// Returns whether the source has partial sums.
  [[nodiscard]] bool has_sums() const { return has_sums_; }
  /// Returns the type in which sums are formed.
  [[nodiscard]] DataType sum_type() const { return sum_type_; }
  /// Returns whether sums are formed in memory of their own.
  [[nodiscard]] bool has_scratch() const { return has_sums_ && sum_type_ != target_.type; }

 private:
  Rank self_;
  NeededMemory source_, target_;
  DataType message_type_, forwarded_type_, sum_type_;
  bool has_sums_;
};

}  // namespace rankmesh::exchange::detail
