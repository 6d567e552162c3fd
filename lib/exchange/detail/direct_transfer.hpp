// SPDX-License-Identifier: BSD-3-Clause
// The part of a transfer in which ranks of a node read each other's memory.
//
// For each stream, the sender publishes where its elements lie, and sends a notice. The receiver
// reads the elements from the sender's memory to their places, and answers with a notice. The
// sender must not change its memory before. If it gives up, it says so in
// PublishedMemory::transfer, which the receiver reads after the elements.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
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
  /// Returns the number of notices that have arrived.
  [[nodiscard]] std::size_t finished() const { return arrived_; }

 private:
  struct Notice {
    enum Kind : std::uint64_t { may_read, has_read };
    std::uint64_t kind = may_read;
    std::uint64_t step = 0;
    std::uint64_t table = 0;  // the addresses of PublishedMemory, in the sender's memory
    std::uint64_t transfer = 0;
    std::uint64_t number = 0;  // of the transfer
  };
  struct Outgoing {
    Notice notice;
    std::unique_ptr<Pending> pending;
  };
  struct Exchange {
    Notice incoming{};
    std::unique_ptr<Pending> receive{};
    int expected = 0;  // notices
    std::array<Outgoing, 4> outgoing{};
    std::size_t sent = 0;
    bool is_lost = false;  // its memory cannot be read; those who look for processes report it
  };

  void post_receive(std::size_t peer);
  void send(std::size_t peer, const Notice& notice);
  void take(std::size_t peer);
  [[nodiscard]] bool read(DirectPeer& peer, const Notice& notice);
  [[nodiscard]] bool read_table(DirectPeer& peer, const Notice& notice);
  [[nodiscard]] bool gather(const DirectPeer& peer, const Notice& notice);

  RedistributionState& state_;
  std::function<void(std::int64_t)> count_;
  std::vector<Exchange> exchanges_;  // with state_.direct
  std::array<std::int64_t, 2> unread_{};
  std::size_t arrived_ = 0;
  std::vector<iovec> to_, from_;  // the pieces of the next read
};

}  // namespace rankmesh::exchange::detail
