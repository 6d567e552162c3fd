// SPDX-License-Identifier: BSD-3-Clause
// Reads elements from the memory of other ranks of the node, in one transfer.
//
// Streams that are read from the places of their elements are read in turns of 256 KiB. The next
// turn belongs to the stream that has got least far in the list of tensors. Peers usually have
// neighbouring parts of each tensor, so all that is stored in a page of the target is stored within
// a few turns. With one stream after the other, each page of small targets is visited once per
// peer; in a program that only reads 36,096 pieces of each of two peers, that took 15 % longer.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "redistribution_state.hpp"

namespace rankmesh::exchange::detail {

class DirectReader {
 public:
  /// A stream of state.direct: the position of the peer, and the step.
  using Stream = std::pair<std::size_t, std::size_t>;

  /// @param count  Is called with the bytes that have been read.
  DirectReader(RedistributionState& state, std::function<void(std::int64_t)> count);

  /// Reads a packed piece, and stores its elements. Returns false if the peer has ended or has
  /// given up.
  /// @throws SharedMemoryError if the system refuses a read.
  [[nodiscard]] bool read_packed(Stream from, const DirectNotice& notice);
  /// Says that a stream can be read from the places of its elements.
  void open(Stream from, const DirectNotice& notice);
  /// Returns the number of open streams.
  [[nodiscard]] std::size_t open_streams() const { return open_; }
  /// Reads the next elements of an open stream. Returns the stream if it ends with them. A stream
  /// is closed when it ends, or when its peer has ended or has given up.
  /// @throws SharedMemoryError if the system refuses a read.
  std::optional<Stream> read_next();
  /// Returns whether all elements of a stream have been read.
  [[nodiscard]] bool is_at_end(Stream from) const {
    return readings_[from.first][from.second].ahead.is_at_end();
  }

 private:
  struct Reading {
    DirectNotice notice{};
    bool is_open = false;
    StreamWalk ahead, behind;  // what is read, and what is stored
    std::int64_t bytes = 0;    // have been read
    // The tensors whose addresses in the peer's memory are known; see DirectPeer::addresses.
    std::size_t first_known = 0, known = 0;
  };

  // Says whose memory is read by the functions below.
  void choose(Stream from, const DirectNotice& notice) {
    peer_ = &state_.direct[from.first];
    notice_ = notice;
  }
  [[nodiscard]] Reading* furthest_behind(Stream& from);
  [[nodiscard]] bool read_turn(Reading& reading);
  void add_strip(const LocalArray& source, const LocalArray& target, const Strip& strip);
  void store_scratch(StreamWalk& behind, std::int64_t bytes);
  void flush();
  // Returns where a tensor lies in the memory of the peer.
  [[nodiscard]] std::byte* address_of(std::size_t tensor, Reading& reading) {
    if (tensor - reading.first_known >= reading.known) read_addresses(tensor, reading);
    return peer_->addresses[notice_.step][tensor - reading.first_known];
  }
  void read_addresses(std::size_t tensor, Reading& reading);
  [[nodiscard]] const ArrayGaps* gaps_of(std::size_t tensor) const;
  [[nodiscard]] LocalArray target_of(std::size_t tensor) const;
  [[nodiscard]] bool read_gaps();
  [[nodiscard]] bool read(std::uint64_t address, std::byte* to, std::int64_t bytes);
  [[nodiscard]] bool gather();
  [[nodiscard]] bool has_read(int code, std::uint64_t transfer);

  RedistributionState& state_;
  std::function<void(std::int64_t)> count_;
  std::vector<std::array<Reading, 2>> readings_;  // with state_.direct, by step
  std::size_t open_ = 0;
  DirectPeer* peer_ = nullptr;    // whose memory is read
  DirectNotice notice_{};         // what it has said about that
  std::vector<iovec> to_, from_;  // the pieces of the next read
  std::int64_t gathered_ = 0;     // their bytes
  bool is_refused_ = false;       // a read of the present turn has failed
  std::byte* scratch_ = nullptr;  // the end of what the present piece has in the scratch memory
};

}  // namespace rankmesh::exchange::detail
