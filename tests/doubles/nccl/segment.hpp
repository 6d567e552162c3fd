// SPDX-License-Identifier: BSD-3-Clause
// The memory that the ranks of one communicator share. It has no name in any file system: the root
// of a unique ID makes it and hands it to the ranks, so that a killed job leaves nothing behind.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "outcome.hpp"

namespace fake {

inline constexpr std::size_t chunk_bytes = 32 * 1024;
inline constexpr std::uint64_t board_rows = 64;

// What a rank says about one collective, so that others can compare.
struct Posted {
  int kind = 0;
  int type = 0;
  int op = 0;
  int root = 0;
  std::uint64_t count = 0;
};

// The ID by which the members of a child connect, written by the first of them.
struct Offer {
  std::atomic<std::uint64_t> turn;
  char id[2][128];  // of the latest two
};

// What one rank tells the others; all are zero at first.
struct RankSlot {
  std::atomic<std::uint32_t> doorbell;  // rung when something changed that this rank may wait for
  std::atomic<std::uint32_t> attached;
  std::atomic<std::uint32_t> left;  // destroyed its handle in an orderly way
  pid_t process;
  std::uint64_t process_space;  // process numbers mean something only inside one
  std::uint64_t host;
  std::uint64_t ids;  // hash of the unique IDs that it was given
  char bus[32];
  int capability;                     // of its device: 90 for 9.0
  std::atomic<std::uint64_t> posted;  // collectives begun
  Posted board[board_rows];
  std::atomic<std::uint64_t> met;    // host-side barriers begun
  int meeting[2], color[2], key[2];  // of the latest two
  std::atomic<std::uint64_t> shrunk;
  std::atomic<std::uint32_t> cut_by;  // 1 + a rank of another host that closed its connections
  Offer offers[2];                    // for children by split and by shrink
};

// One direction between two ranks: a box that holds one piece of a message.
struct alignas(64) Channel {
  std::atomic<std::uint32_t> full;
  std::uint32_t bytes;
  std::uint64_t total;  // of the whole message
  std::uint64_t tag;
  std::int32_t kind;
  std::int32_t is_registered;
  alignas(64) char data[chunk_bytes];
};

struct Head {
  std::uint32_t ranks;
  std::atomic<std::uint32_t> refused_by;  // 1 + the rank that set the error; taken once
  std::atomic<std::int32_t> error;        // an ncclResult_t: the communicator is of no use
  char text[480];
};

class Segment {
 public:
  Segment() = default;
  Segment(int descriptor, int ranks);  // maps; ok() tells
  ~Segment();
  Segment(Segment&& other) noexcept { *this = static_cast<Segment&&>(other); }
  Segment& operator=(Segment&& other) noexcept;

  static int create(int ranks);  // a descriptor, or -1
  static long alive();

  bool ok() const { return base_ != nullptr; }
  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  RankSlot& slot(int rank) const;
  Channel& channel(int from, int to) const;
  int ranks() const { return ranks_; }

  void ring(int rank) const;
  void ring_all() const;
  // Refuses the communicator to every rank that still waits in its init; the first cause stays.
  void refuse(int rank, const Outcome& cause) const;
  // Lets the ranks of other hosts know that a rank has closed its connections. Ranks of one host
  // share memory, and learn nothing.
  void cut_other_hosts(int rank) const;
  // What ends the communicator on a rank, apart from what the rank itself does.
  Outcome trouble(int rank) const;

 private:
  char* base_ = nullptr;
  std::size_t bytes_ = 0;
  int ranks_ = 0;
};

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, double seconds);

}  // namespace fake
