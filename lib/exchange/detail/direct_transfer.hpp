// SPDX-License-Identifier: BSD-3-Clause
// The part of a transfer in which ranks of a node read each other's memory.
//
// For each stream, the sender publishes where its elements lie, and sends a notice. The receiver
// reads the elements from the sender's memory to their places, and answers with a notice. The
// sender must not change its memory before. If the runs of a stream are short, the sender packs it
// piece by piece instead, with a notice for each piece; two pieces are on the way at a time. If a
// sender gives up, it says so in PublishedMemory::transfer, which a receiver reads after the
// elements.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "redistribution_state.hpp"

namespace rankmesh::exchange::detail {

class DirectTransfer {
 public:
  /// @param count  Is called with the bytes that have been read.
  DirectTransfer(RedistributionState& state, std::function<void(std::int64_t)> count);

  /// Tells the receivers of a step that they may read.
  void begin_step(TransferStep step);
  /// Reads what can be read, and answers. Returns whether all is complete. Never blocks.
  /// @throws SharedMemoryError if the system refuses a read.
  bool test();
  /// Tells the other ranks that the transfer is given up.
  void give_up() noexcept { state_.published.transfer = 0; }

  /// Returns whether all elements of the first step have been read.
  [[nodiscard]] bool has_first_step() const { return unread_[0] == 0; }
  [[nodiscard]] bool is_in_mpi() const;
  /// Adds the members with which this rank is not finished.
  void add_unfinished(std::set<std::int64_t>& members) const;
  /// Returns the number of streams that are finished.
  [[nodiscard]] std::size_t finished() const { return finished_; }

 private:
  struct Notice {
    enum Kind : std::uint32_t { may_read, may_read_packed, has_read };
    std::uint32_t kind = may_read;
    std::uint32_t step = 0;
    std::uint64_t address = 0;   // of the addresses of the sender's memory, or of the packed piece
    std::uint64_t strides = 0;   // the address of the strides there; 0 if there are no gaps
    std::uint64_t bytes = 0;     // of the packed piece
    std::uint64_t transfer = 0;  // the address of PublishedMemory::transfer
    std::uint64_t number = 0;    // of the transfer
  };
  struct Outgoing {
    Notice notice;
    std::unique_ptr<Pending> pending;
  };
  // A stream that this rank packs.
  struct Packing {
    bool is_used = false;
    StreamWalk walk;
    int on_the_way = 0;    // pieces
    std::size_t next = 0;  // 0 or 1: where the next piece is packed
  };
  // A stream that this rank reads.
  struct Reading {
    StreamWalk ahead, behind;  // what is read, and what is stored
  };
  struct Exchange {
    Notice incoming{};
    std::unique_ptr<Pending> receive{};
    int streams = 0;  // that are not finished, in both directions
    std::array<Packing, 2> packing{};
    std::array<Reading, 2> reading{};
    std::deque<Outgoing> outgoing{};
  };

  void post_receive(std::size_t peer);
  void send(std::size_t peer, const Notice& notice);
  [[nodiscard]] std::uint64_t publish_strides(TransferStep step);
  void pack(std::size_t peer, std::size_t step);
  void take(std::size_t peer);
  void end_stream(std::size_t peer);
  [[nodiscard]] bool read(std::size_t peer, const Notice& notice);
  [[nodiscard]] bool read_packed(std::size_t peer, const Notice& notice);
  void add_piece(std::size_t peer, const Notice& notice, std::int64_t bytes);
  void store_piece(std::size_t peer, const Notice& notice, std::int64_t bytes);
  void flush(std::size_t peer, const Notice& notice);
  [[nodiscard]] bool read_places(DirectPeer& peer, const Notice& notice);
  void find_gaps(DirectPeer& peer, std::size_t step);
  [[nodiscard]] bool gather(const DirectPeer& peer, const Notice& notice);

  RedistributionState& state_;
  std::function<void(std::int64_t)> count_;
  std::vector<Exchange> exchanges_;  // with state_.direct
  std::array<std::int64_t, 2> unread_{};
  std::size_t finished_ = 0;
  std::vector<iovec> to_, from_;  // the pieces of the next read
  std::int64_t gathered_ = 0;     // their bytes
  bool is_refused_ = false;       // a read of the present piece has failed
  std::byte* scratch_ = nullptr;  // the end of what the present piece has in the scratch memory
};

}  // namespace rankmesh::exchange::detail
