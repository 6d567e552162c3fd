// SPDX-License-Identifier: BSD-3-Clause
// Collectives as messages between two members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rankmesh/mpi/members.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Memory that one collective passes on to the next one, so that the system need not map it again.
struct SpareMemory {
  std::unique_ptr<std::byte[]> data;
  std::int64_t bytes = 0;
};

/// Carries out a collective by messages of MPI between two members each. A group without a
/// communicator of its own has no other way over MPI.
///
/// Every member sends directly to the members that need its data, and not along a tree. Large
/// reductions and broadcasts are divided: each member reduces or passes on one share, in pieces
/// that fit in a cache. A reduction combines the values in group order. Therefore all members get
/// the same bits, and every run gives the same bits.
///
/// A collective consists of steps. A step posts messages, and the next step begins when they have
/// arrived. All members post the messages to a member in the same order, so one tag is enough.
class MessageCollective {
 public:
  /// @param call     Must outlive this object. Its blocks and its function, too.
  /// @param members  Must outlive this object.
  /// @param largest  The largest count that is passed to MPI.
  /// @param tag      The tag of the messages, which no other collective in flight has.
  /// @param spare    Used, and given back at the end. Must outlive this object.
  MessageCollective(const Call& call, const mpi::Members& members, std::int64_t largest, int tag,
                    SpareMemory& spare);
  /// MPI may still write to the scratch memory of a collective that has not ended, so this memory
  /// is leaked.
  ~MessageCollective();
  MessageCollective(const MessageCollective&) = delete;
  MessageCollective& operator=(const MessageCollective&) = delete;

  /// Blocks until this member's part is complete. All members must have begun the collective, or
  /// begin it without waiting for anything that this member does later.
  void wait();
  /// Makes progress; does not block. Returns whether this member's part is complete.
  bool test();
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  /// Returns whether other members may wait for messages that this one has not posted yet.
  [[nodiscard]] bool has_further_steps() const { return next_step_ < steps_; }

 private:
  // Up to this size, in bytes, one member does the whole work of a reduction or a broadcast.
  static constexpr std::int64_t largest_undivided = 64 << 10;
  // What a member reduces or passes on in one step, in bytes. Several pieces of this size fit in
  // the second cache of a core.
  static constexpr std::int64_t piece_bytes = 512 << 10;
  // More spare memory than this is not kept.
  static constexpr std::int64_t most_spare_bytes = 4 << 20;

  // The part of a vector that one member reduces or passes on, in elements.
  struct Share {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  // The members that get the result of a reduction.
  enum class Result : std::uint8_t { of_own_share, at_root, everywhere };

  void begin_barrier();
  void begin_broadcast();
  void begin_divided_broadcast();
  void begin_all_gather();
  void begin_gather();
  void begin_scatter();
  void begin_all_to_all();
  void begin_reduction(Result result, std::vector<Share> shares);

  [[nodiscard]] std::vector<Share> shares_of_reduction(std::int64_t owner) const;
  [[nodiscard]] std::vector<Share> shares_of_blocks() const;
  [[nodiscard]] Share piece_of(std::int64_t member, std::int64_t piece) const;
  [[nodiscard]] std::int64_t pieces() const;
  void post_contributions(std::int64_t piece);
  void combine(std::int64_t piece);
  void combine_by_user(std::byte* to, std::int64_t piece, std::int64_t count);
  void post_results(Result result, std::int64_t piece);
  [[nodiscard]] std::byte* contribution(std::int64_t member, std::int64_t piece);

  void reserve_scratch(std::int64_t bytes);
  void complete();
  // Begins the next step. Returns whether there was one.
  bool begin_step();
  void send(std::int64_t member, const std::byte* data, std::int64_t bytes);
  void send(std::int64_t member, ConstBuffer block) { send(member, block.data, block.bytes()); }
  void receive(std::int64_t member, std::byte* data, std::int64_t bytes);
  void receive(std::int64_t member, Buffer block) { receive(member, block.data, block.bytes()); }
  // Calls visit(member) for each other member, beginning after this one, so that not all members
  // send to the same one first.
  template <class Visit>
  void for_each_other(Visit&& visit) const {
    for (std::int64_t k = 1; k < size_; ++k) visit((self_ + k) % size_);
  }
  [[nodiscard]] ConstBuffer in_block(std::int64_t member, std::int64_t count) const;
  [[nodiscard]] Buffer out_block(std::int64_t member, std::int64_t count) const;
  [[nodiscard]] bool is_root() const { return call_.root.value() == self_; }

  const Call& call_;
  const mpi::Members& members_;
  const std::int64_t largest_;
  const int tag_;
  const std::int64_t self_, size_;

  std::function<void(std::int64_t)> step_;
  std::int64_t steps_ = 0, next_step_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  bool is_complete_ = false;

  std::vector<Share> shares_;  // of the members
  std::int64_t unit_ = 1;      // bytes of an element
  SpareMemory& spare_;
  // Contributions of the members to two pieces, or a copy of the input. MPI fills this memory, so
  // it is not initialised.
  SpareMemory scratch_;
  std::unique_ptr<std::byte[]>
      result_;                         // of a piece of this member's share, on the way to the root
  std::byte* result_place_ = nullptr;  // of this member's share in `out`; null: in `result_`
};

}  // namespace rankmesh::detail
