// SPDX-License-Identifier: BSD-3-Clause
// The tensors of a redistribution, the memory that the program has passed for them, and how their
// elements get into messages and out of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "message_stream.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "tensor_kind.hpp"

namespace rankmesh::exchange::detail {

/// One array of each tensor. A list may have tens of thousands of tensors, so only the addresses
/// are stored, unless there are gaps. Other ranks of the node read the addresses.
struct BoundArrays {
  std::vector<std::byte*> data{};
  std::vector<ArrayGaps> gaps{};  ///< Empty without strides.

  [[nodiscard]] ArrayView view(std::size_t tensor, DataType type) const {
    return {data[tensor], type, gaps.empty() ? nullptr : &gaps[tensor]};
  }
};

class BoundTensors {
 public:
  BoundTensors() = default;
  /// @param plan, part  They must exist as long as this object.
  /// @throws UsageError if the types of a tensor cannot be converted.
  BoundTensors(const TransferPlan& plan, const TransferOfRank& part, Rank self);

  [[nodiscard]] std::size_t size() const { return part_ == nullptr ? 0 : part_->size(); }
  /// Returns what is common to the tensors of each pair of places; see TransferOfRank::kind().
  [[nodiscard]] const std::vector<TensorKind>& kinds() const { return kinds_; }
  [[nodiscard]] const TensorKind& kind(std::size_t tensor) const {
    return kinds_[part_->kind(tensor)];
  }
  [[nodiscard]] bool have_sums() const { return have_sums_; }

  /// Checks the memory of all tensors, and uses it until the next call.
  /// @throws UsageError if it does not fit. The memory of some tensors may then be used.
  void bind(std::span<const TensorSource> source, std::span<const TensorTarget> target,
            MemoryKind kind);
  /// Returns the arrays from which elements are sent in a step.
  [[nodiscard]] const BoundArrays& senders(TransferStep step) const {
    return step == TransferStep::forward ? target_ : source_;
  }
  [[nodiscard]] ArrayView sender(std::size_t tensor, TransferStep step) const {
    return senders(step).view(tensor, kind(tensor).sender(step).type);
  }
  [[nodiscard]] ArrayView target(std::size_t tensor) const {
    return target_.view(tensor, kind(tensor).target.type);
  }

  /// Prepares the elements that receive sums: those that this rank's part of the plan stores.
  void begin_sums() const;
  /// Stores the sums in the targets.
  void end_sums() const;
  /// Returns the address of the elements of a strip if the message can be sent from there, or
  /// received there; otherwise null.
  [[nodiscard]] const std::byte* sent_in_place(std::size_t tensor, TransferStep step,
                                               const Strip& strip) const;
  [[nodiscard]] std::byte* received_in_place(std::size_t tensor, TransferStep step,
                                             const Strip& strip) const;
  /// Copies the elements of a strip into a message. Returns the end of the elements there.
  /// @param type  The type of the elements in the message.
  std::byte* pack(std::size_t tensor, TransferStep step, const Strip& strip, std::byte* message,
                  DataType type) const;
  /// Copies the elements of a strip out of a message. Returns the end of the elements there.
  /// @param type  The type of the elements in the message.
  const std::byte* unpack(std::size_t tensor, TransferStep step, const Strip& strip,
                          const std::byte* message, DataType type) const;
  /// Copies this rank's own elements of a tensor.
  void copy(std::size_t tensor, const StreamKind& own) const;

 private:
  void bind(BoundArrays& arrays, std::size_t tensor, const NeededMemory& needed,
            const std::vector<std::int64_t>& strides);
  // Returns the array that receives elements in a step: the target, or the sums in a wider type.
  [[nodiscard]] ArrayView receiver(std::size_t tensor, TransferStep step) const;

  const TransferPlan* plan_ = nullptr;
  const TransferOfRank* part_ = nullptr;
  std::vector<TensorKind> kinds_;
  bool have_sums_ = false;
  BoundArrays source_, target_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;  // of tensors whose sums need memory
};

}  // namespace rankmesh::exchange::detail
