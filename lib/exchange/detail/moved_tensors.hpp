// SPDX-License-Identifier: BSD-3-Clause
// The tensors of a redistribution, and the memory that the program has passed for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "local_array.hpp"
#include "moved_kind.hpp"
#include "moved_tensor.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// One array of each tensor. A list may have tens of thousands of tensors, so only the addresses
/// are stored, unless there are gaps.
class BoundArrays {
 public:
  /// Forgets the arrays.
  void clear(std::size_t tensors);
  /// Stores an array.
  /// @param strides  One per axis, or none for a dense array.
  void set(std::size_t tensor, std::byte* data, const NeededMemory& needed,
           const std::vector<std::int64_t>& strides) {
    data_[tensor] = data;
    if (!strides.empty() && needed.count > 0) set_gaps(tensor, needed.shape, strides);
  }

  /// Returns the addresses of all arrays.
  [[nodiscard]] const std::vector<std::byte*>& addresses() const { return data_; }
  /// Returns whether strides were passed for an array.
  [[nodiscard]] bool have_gaps() const { return have_gaps_; }
  /// Returns the gaps of an array; null if no array has gaps.
  [[nodiscard]] const ArrayGaps* gaps(std::size_t tensor) const {
    return have_gaps_ ? &gaps_[tensor] : nullptr;
  }
  /// Returns an array.
  [[nodiscard]] LocalArray array(std::size_t tensor, DataType type) const {
    return {data_[tensor], type, gaps(tensor)};
  }

 private:
  void set_gaps(std::size_t tensor, const std::vector<std::int64_t>& shape,
                const std::vector<std::int64_t>& strides);

  std::vector<std::byte*> data_;
  bool have_gaps_ = false;
  std::vector<ArrayGaps> gaps_;  // kept for later transfers
};

/// The tensors of a redistribution.
class MovedTensors {
 public:
  MovedTensors() = default;
  /// @param plan, part  They must exist as long as this object.
  /// @throws UsageError if the types of a tensor cannot be converted.
  MovedTensors(const TransferPlan& plan, const TransferOfRank& part, Rank self);

  [[nodiscard]] std::size_t size() const { return part_ == nullptr ? 0 : part_->size(); }
  /// Returns what is common to the tensors of each pair of places; see TransferOfRank::kind().
  [[nodiscard]] const std::vector<MovedKind>& kinds() const { return kinds_; }
  [[nodiscard]] const MovedKind& kind(std::size_t tensor) const {
    return kinds_[part_->kind(tensor)];
  }
  /// Returns whether a tensor has partial sums.
  [[nodiscard]] bool have_sums() const { return have_sums_; }

  /// Checks the memory of all tensors, and uses it until the next call.
  /// @throws UsageError if it does not fit. The memory of some tensors may then be used.
  void bind(std::span<const TensorSource> source, std::span<const TensorTarget> target,
            MemoryKind kind);
  /// Returns a tensor with its memory.
  [[nodiscard]] MovedTensor operator[](std::size_t tensor) const {
    const MovedKind& kind = this->kind(tensor);
    const LocalArray target = target_.array(tensor, kind.target().type);
    return {kind, source_.array(tensor, kind.source().type), target,
            kind.has_scratch() ? LocalArray{scratch_[tensor].get(), kind.sum_type()} : target};
  }
  /// Returns the memory from which elements are sent in a step.
  [[nodiscard]] const BoundArrays& senders(TransferStep step) const {
    return step == TransferStep::forward ? target_ : source_;
  }
  /// Returns the targets.
  [[nodiscard]] const BoundArrays& targets() const { return target_; }

 private:
  const TransferPlan* plan_ = nullptr;
  const TransferOfRank* part_ = nullptr;
  std::vector<MovedKind> kinds_;
  bool have_sums_ = false;
  BoundArrays source_, target_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;  // of tensors whose sums need memory
};

}  // namespace rankmesh::exchange::detail
