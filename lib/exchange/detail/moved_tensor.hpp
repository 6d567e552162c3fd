// SPDX-License-Identifier: BSD-3-Clause
// One tensor of a redistribution with its memory: how its elements get into messages and out of
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "local_array.hpp"
#include "message_stream.hpp"
#include "moved_kind.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// Other ranks read pieces of memory directly if each piece has at least this many bytes. For a
/// shorter piece, the system call takes longer than a second copy.
inline constexpr std::int64_t least_direct_piece = 512;

/// One tensor of a redistribution. It is a view, made where it is needed.
struct MovedTensor {
  const MovedKind& kind;
  LocalArray source, target;
  LocalArray sums;  ///< The target, or memory of the wider type.

  /// Prepares the elements that receive sums: those that this rank's part of the plan stores.
  void begin_sums(const TensorTransferOfRank& part) const;
  /// Stores the sums in the target.
  void end_sums(const TensorTransferOfRank& part) const;

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
  /// Returns the memory from which elements are sent.
  [[nodiscard]] const LocalArray& sender(TransferStep step) const {
    return step == TransferStep::forward ? target : source;
  }
  /// Copies this rank's own elements.
  /// @param cursor  Is used to go through them.
  void copy(const StreamKind& own, StripCursor& cursor) const;

 private:
  [[nodiscard]] const LocalArray& receiver(TransferStep step) const {
    return step == TransferStep::first && kind.has_sums() ? sums : target;
  }
};

}  // namespace rankmesh::exchange::detail
