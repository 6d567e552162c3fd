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

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "direct_reader.hpp"
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
  struct Outgoing {
    DirectNotice notice;
    std::unique_ptr<Pending> pending;
  };
  // A stream that this rank packs.
  struct Packing {
    bool is_used = false;
    StreamWalk walk;
    int on_the_way = 0;    // pieces
    std::size_t next = 0;  // 0 or 1: where the next piece is packed
  };
  struct Exchange {
    DirectNotice incoming{};
    std::unique_ptr<Pending> receive{};
    int streams = 0;  // that are not finished, in both directions
    std::array<Packing, 2> packing{};
    std::deque<Outgoing> outgoing{};
  };

  void post_receive(std::size_t peer);
  void send(std::size_t peer, const DirectNotice& notice);
  [[nodiscard]] std::uint64_t publish_strides(TransferStep step);
  void pack(std::size_t peer, std::size_t step);
  void take_notices();
  void take(std::size_t peer);
  void answer(DirectReader::Stream stream);
  void end_stream(std::size_t peer);

  RedistributionState& state_;
  std::vector<Exchange> exchanges_;  // with state_.direct
  std::array<std::int64_t, 2> unread_{};
  std::size_t finished_ = 0;
  DirectReader reader_;
};

}  // namespace rankmesh::exchange::detail
