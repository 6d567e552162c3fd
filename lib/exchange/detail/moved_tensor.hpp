// SPDX-License-Identifier: BSD-3-Clause
// One tensor of a redistribution: its memory, and how its elements get into messages and out of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "block_cursor.hpp"
#include "local_array.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// Other ranks read pieces of memory directly if each piece has at least this many bytes. For a
/// shorter piece, the system call takes longer than a second copy.
inline constexpr std::int64_t least_direct_piece = 512;

/// One tensor of a redistribution.
class MovedTensor {
 public:
  /// @throws UsageError if the types cannot be converted.
  MovedTensor(const TensorTransfer& transfer, Rank self);

  /// Returns the type of the elements in a message.
  [[nodiscard]] DataType type_in_message(TransferStep step) const {
    return step == TransferStep::forward ? forwarded_type_ : message_type_;
  }
  /// Throws a UsageError unless the memory fits the places and is of this kind.
  void check(const TensorSource& source, const TensorTarget& target, MemoryKind kind) const;
  /// Uses this memory until the next call.
  void bind(const TensorSource& source, const TensorTarget& target);

  /// Prepares the elements that receive sums: those that this rank's part of the plan stores.
  void begin_sums(const TensorTransferOfRank& part);
  /// Stores the sums in the target.
  void end_sums(const TensorTransferOfRank& part);

  /// Returns the address of the elements of a strip if the message can be sent from there, or
  /// received there; otherwise null.
  [[nodiscard]] const std::byte* sent_in_place(TransferStep step, const Strip& strip) const;
  [[nodiscard]] std::byte* received_in_place(TransferStep step, const Strip& strip) const;
  /// Copies the elements of a strip into a message. Returns the end of the elements there.
  /// @param type  The type of the elements in the message.
  std::byte* pack(TransferStep step, const Strip& strip, std::byte* message, DataType type) const;
  /// Copies the elements of a strip out of a message. Returns the end of the elements there.
  /// @param type  The type of the elements in the message.
  const std::byte* unpack(TransferStep step, const Strip& strip, const std::byte* message,
                          DataType type) const;
  /// Returns the number of numbers that publish() stores.
  [[nodiscard]] std::size_t published_size() const { return 1 + transfer_->from.shape().size(); }
  /// Stores the position of the elements that this rank sends in a step: the address, and the
  /// stride of each axis.
  void publish(TransferStep step, std::int64_t* published) const;
  /// Returns whether pieces of this memory are long enough to be read directly.
  [[nodiscard]] bool can_be_read(TransferStep step) const {
    return sender(step).bytes_of_piece() >= least_direct_piece;
  }
  /// Returns the memory that another rank has published. Its addresses belong to that rank.
  [[nodiscard]] LocalArray memory_of(Rank owner, TransferStep step,
                                     const std::int64_t* published) const;
  /// Returns the type of the elements in the memory from which they are sent.
  [[nodiscard]] DataType type_of_sender(TransferStep step) const {
    return step == TransferStep::forward ? target_type_ : source_type_;
  }
  /// Returns the memory from which elements are sent.
  [[nodiscard]] const LocalArray& sender(TransferStep step) const {
    return step == TransferStep::forward ? target_ : source_;
  }
  /// Returns the memory of the target.
  [[nodiscard]] const LocalArray& target() const { return target_; }
  /// Returns whether the source has partial sums.
  [[nodiscard]] bool has_sums() const { return has_sums_; }
  /// Copies this rank's own elements.
  void copy(const TransferMessage& own) const;

 private:
  [[nodiscard]] const LocalArray& receiver(TransferStep step) const {
    return step == TransferStep::first && has_sums_ ? sums_ : target_;
  }
  [[nodiscard]] bool has_scratch() const { return has_sums_ && sum_type_ != target_type_; }
  void check(const ConstBuffer& memory, const std::vector<std::int64_t>& strides,
             const TensorPlacement& place, const std::vector<std::int64_t>& shape, const char* role,
             MemoryKind kind) const;

  const TensorTransfer* transfer_;
  Rank self_;
  DataType source_type_, target_type_, message_type_, forwarded_type_, sum_type_;
  bool has_sums_;
  std::vector<std::int64_t> source_shape_, target_shape_;
  LocalArray source_, target_;
  LocalArray sums_;  // the target, or memory of the wider type
  std::vector<std::byte> scratch_;
};

}  // namespace rankmesh::exchange::detail
