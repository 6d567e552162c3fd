// SPDX-License-Identifier: BSD-3-Clause
// What tensors that move between the same two places have in common on a rank.
#pragma once

#include <array>
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
  [[nodiscard]] bool is_met_by(const TensorMemory<Byte>& given, MemoryKind kind) const {
    return given.memory.count == count && given.memory.type == type && given.memory.kind == kind &&
           given.strides.empty() && (given.lengths.empty() || given.lengths == shape);
  }
};

/// The types and the local shapes of a tensor on one rank.
struct TensorKind {
  /// @param transfer  One of the tensors.
  /// @throws UsageError if the types cannot be converted.
  TensorKind(const TensorTransfer& transfer, Rank self);

  /// Throws a UsageError unless the memory fits the places and is of this kind. Cheap if it is
  /// dense.
  /// @param transfer  The tensor, for messages.
  void check(const TensorTransfer& transfer, const TensorSource& given_source,
             const TensorTarget& given_target, MemoryKind kind) const;

  /// Does the same for one of the two.
  void check_source(const TensorTransfer& transfer, const TensorSource& given,
                    MemoryKind kind) const;
  void check_target(const TensorTransfer& transfer, const TensorTarget& given,
                    MemoryKind kind) const;

  /// Returns what the memory from which elements are sent in a step must be.
  [[nodiscard]] const NeededMemory& sender(TransferStep step) const {
    return step == TransferStep::forward ? target : source;
  }
  /// Returns the type of the elements in the messages of a step.
  [[nodiscard]] DataType type_of(TransferStep step) const {
    return type_in_message[static_cast<std::size_t>(step)];
  }
  /// Returns whether sums are formed in memory of their own.
  [[nodiscard]] bool has_scratch() const { return has_sums && sum_type != target.type; }

  Rank self;
  NeededMemory source, target;
  std::array<DataType, 2> type_in_message;  ///< By the step. See type_of().
  DataType sum_type;                        ///< The type in which sums are formed.
  bool has_sums;                            ///< Whether the source has partial sums.
};

}  // namespace rankmesh::exchange::detail
