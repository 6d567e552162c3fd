// SPDX-License-Identifier: BSD-3-Clause
// Messages that their receiver reads from the memory of the sender, another process of the node.
//
// A message of elements is replaced by two small messages: the sender offers its memory, and the
// receiver answers when it has read. A stream is one such message, and its elements are read from
// their places. If its runs are short, or the memory of the sender has gaps, the sender packs it
// into pieces, and offers each of them; two pieces are on the way at a time.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "message_stream.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh::exchange::detail {

struct RedistributionState;

/// Other ranks read pieces of memory directly if each piece has at least this many bytes. For a
/// shorter piece, the system call takes longer than a second copy.
inline constexpr std::int64_t least_direct_piece = 512;
/// The bytes that are read at a time where elements are stored in a second step.
inline constexpr std::int64_t direct_scratch = 128 << 10;

/// A stream between two ranks that can read each other's memory.
struct DirectStream {
  MessageStream stream;
  std::int32_t local_rank = 0;            ///< Of the peer.
  bool has_short_runs = false;            ///< If this rank sends it: whether it is packed.
  std::int64_t piece = 0;                 ///< The most bytes of a packed piece.
  std::unique_ptr<std::byte[]> packed{};  ///< Memory for two pieces.
};

/// Memory that the receives of a transfer use one after the other.
struct DirectMemory {
  std::vector<iovec> to, from;  ///< The pieces of the next read.
  std::unique_ptr<std::byte[]> scratch;
};

/// What a sender tells a receiver.
struct DirectOffer {
  std::uint64_t address = 0;   ///< Of BoundArrays::data, or of a packed piece.
  std::uint64_t bytes = 0;     ///< Of the packed piece; 0 if the elements are in their places.
  std::uint64_t transfer = 0;  ///< Of RedistributionState::transfer.
  std::uint64_t number = 0;    ///< What is found there until the sender gives up.
};

/// The sender's side of a stream, in one transfer. It must not move.
class DirectSend {
 public:
  DirectSend(RedistributionState& state, DirectStream& of);
  /// Offers what can be offered. Returns whether the receiver has read all. Never blocks.
  bool test();
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] bool is_in_mpi() const;
  [[nodiscard]] const MessageStream& stream() const { return of_.stream; }

 private:
  struct Piece {
    DirectOffer offer{};
    std::unique_ptr<Pending> send{}, answer{};
  };
  void offer(std::size_t number);

  RedistributionState& state_;
  DirectStream& of_;
  StreamPosition position_{};
  std::array<Piece, 2> pieces_{};
  bool is_packed_, is_complete_ = false;
};

/// The receiver's side of a stream, in one transfer. It must not move.
class DirectReceive {
 public:
  DirectReceive(RedistributionState& state, const DirectStream& of);
  /// Looks for an offer. Never blocks.
  void look();
  /// Returns whether there are elements to read. If the peer has ended or has given up, there are
  /// none, and the stream never ends: those who look for processes report it.
  [[nodiscard]] bool is_offered() const { return left_ > 0 && !is_lost_; }
  /// Reads the next turn of what is offered. Answers if it was the last one. Makes no call of MPI
  /// otherwise, because MPI may yield the core. Returns the bytes that it has read.
  /// @throws SharedMemoryError if the system refuses a read.
  std::int64_t read();
  /// Returns whether all elements have been read.
  [[nodiscard]] bool has_read() const { return position_.is_at_end() && left_ == 0 && !is_lost_; }
  /// Returns whether the sender knows that, too.
  [[nodiscard]] bool is_complete() const { return has_read() && answer_ == nullptr; }
  [[nodiscard]] bool is_in_mpi() const;
  [[nodiscard]] const MessageStream& stream() const { return of_.stream; }

 private:
  void expect_offer();
  std::int64_t read_turn();
  void add_strip(std::size_t tensor, const StreamKind& kind, const Strip& strip);
  void store_scratch(StreamPosition from, std::int64_t bytes);
  void flush();
  // Returns where a tensor lies in the memory of the peer.
  [[nodiscard]] std::byte* source(std::size_t tensor);
  void read_addresses(std::size_t tensor);
  void read_memory(std::uint64_t address, void* to, std::size_t bytes);
  void gather();

  RedistributionState& state_;
  const DirectStream& of_;
  DirectMemory& memory_;
  StreamPosition position_{};
  std::unique_ptr<Pending> expected_{}, answer_{};
  DirectOffer offer_{};
  std::int64_t left_ = 0;         // bytes of what is offered
  bool is_lost_ = false;          // the peer has ended or has given up
  std::int64_t gathered_ = 0;     // bytes of the pieces of the next read
  std::byte* scratch_ = nullptr;  // the end of what is read to the scratch memory
  // The tensors whose addresses in the peer's memory are known.
  std::size_t first_known_ = 0;
  std::vector<std::byte*> addresses_{};
};

/// Moves the streams between ranks that read each other's memory out of the lists `sent` and
/// `received`. Both ranks of a pair decide alike: from the plan, the options, and facts of the
/// node.
void take_direct_streams(RedistributionState& state);

}  // namespace rankmesh::exchange::detail
