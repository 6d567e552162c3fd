// SPDX-License-Identifier: BSD-3-Clause
// The members of a group, as MPI reaches them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::mpi {

/// Counts the messages of one member of a group on a communicator of more ranks. It lies in memory
/// that the members share, so they can tell whether all messages of the group have been received.
struct alignas(64) MessageCounts {
  std::atomic<std::uint64_t> sent{0};      ///< Messages to other members.
  std::atomic<std::uint64_t> received{0};  ///< Messages from other members.

  /// Adds one to a count. Only the member itself writes its counts.
  static void add(std::atomic<std::uint64_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// Says how MPI reaches the members of a group: on a communicator of exactly these members, or on a
/// communicator of more ranks, where the messages of the group have tags of their own. A value of
/// this class does not own the communicator.
class Members {
 public:
  /// The number of tags of a group: messages of a group have the tags 0 to tags - 1.
  static constexpr int tags = 32768;

  /// Creates a group without members.
  Members() = default;
  /// Creates the group of all ranks of a communicator. Implicit, because it is the same group.
  Members(CommunicatorView comm) : comm_{comm}, rank_{comm.rank()}, size_{comm.size()} {}  // NOLINT
  /// Creates a group of some ranks of a communicator. Local.
  /// @param comm   The communicator, which must outlive the messages of the group.
  /// @param ranks  The ranks of the members in `comm`, in group order.
  /// @param rank   This member.
  /// @param slot   A number from 1 to most_slots(). Groups that have a member in common have
  ///               different slots. Messages of the group have the tags slot * tags and above.
  Members(CommunicatorView comm, std::vector<int> ranks, int rank, std::int64_t slot)
      : comm_{comm},
        ranks_{std::move(ranks)},
        rank_{rank},
        size_{static_cast<int>(ranks_.size())},
        first_tag_{static_cast<int>(slot * tags)} {}

  /// Returns the communicator on which the members exchange messages.
  [[nodiscard]] const CommunicatorView& comm() const noexcept { return comm_; }
  /// Returns whether the communicator has exactly these members, so that collectives of MPI can be
  /// called on it.
  [[nodiscard]] bool have_communicator() const noexcept { return ranks_.empty(); }
  /// Returns this member.
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Returns the number of members.
  [[nodiscard]] int size() const noexcept { return size_; }
  /// Returns the rank of a member in the communicator.
  [[nodiscard]] int rank_of(std::int64_t member) const {
    return ranks_.empty() ? static_cast<int>(member) : ranks_[static_cast<std::size_t>(member)];
  }
  /// Returns the member that has a rank of the communicator.
  [[nodiscard]] int member_of(int rank) const {
    if (ranks_.empty()) return rank;
    return static_cast<int>(std::ranges::find(ranks_, rank) - ranks_.begin());
  }
  /// Returns the tag that a message of the group has on the communicator.
  [[nodiscard]] int tag_of(int tag) const noexcept { return first_tag_ + tag; }

  /// Lets copies that are made later count the messages of this member. Local.
  void count_in(std::shared_ptr<MessageCounts> counts) noexcept { counts_ = std::move(counts); }
  /// Returns the counts of this member; null if nothing counts its messages.
  [[nodiscard]] const std::shared_ptr<MessageCounts>& counts() const noexcept { return counts_; }
  /// Counts a message to another member, if messages are counted.
  void count_sent() const noexcept {
    if (counts_ != nullptr) MessageCounts::add(counts_->sent);
  }
  /// Counts a message from another member, if messages are counted.
  void count_received() const noexcept {
    if (counts_ != nullptr) MessageCounts::add(counts_->received);
  }

 private:
  CommunicatorView comm_;
  std::vector<int> ranks_;  // empty: all ranks of the communicator
  int rank_ = 0;
  int size_ = 0;
  int first_tag_ = 0;
  std::shared_ptr<MessageCounts> counts_;
};

/// Returns how many groups can share a communicator. Each group needs as many tags as
/// Members::tags, and the communicator's own messages need as many, too. MPI guarantees only the
/// tags of the latter. With an MPI library that has no more tags, the result is 0.
RANKMESH_API std::int64_t most_slots();

}  // namespace rankmesh::mpi
