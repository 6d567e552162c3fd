// SPDX-License-Identifier: BSD-3-Clause
// The areas of the ranks of a node, which all of these ranks can read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rank_area.hpp"
#include "rank_status.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "record/detail/recorder.hpp"

namespace rankmesh::detail {

/// One area per rank of a mesh on one node, in memory that these ranks share. A rank publishes in
/// its area what it does: whether it is in the mesh, what it waits for, and its call inside MPI.
/// What is also history goes into its record at the same time. The rank holds a lock on one byte of
/// the file behind the memory, which the system releases when the process ends. Therefore the lock
/// shows whether a rank is alive, even between containers, where process ids have no meaning.
///
/// Thread safety: any thread may call any function.
class RANKMESH_API NodeBoard {
 public:
  /// Returns the bytes that a board of some ranks needs.
  static std::size_t bytes(std::size_t ranks);

  /// Publishes this rank, and takes its lock. Local.
  /// @param memory      Zeroed memory that the ranks share; null if this rank is alone.
  /// @param owner       Keeps the memory.
  /// @param descriptor  A file behind the memory, opened by this process. The board closes it. -1
  ///                    if there is none; then the rank has no lock.
  /// @param ranks       The ranks of the mesh that have areas, in ascending order.
  /// @param recorder    The record of this rank; may be null.
  /// @param spares      How many of the ranks, the last ones, are spare: they do not close the
  /// mesh.
  NodeBoard(std::byte* memory, std::shared_ptr<void> owner, int descriptor, std::vector<Rank> ranks,
            Rank self, std::shared_ptr<Recorder> recorder = nullptr, std::size_t spares = 0);
  ~NodeBoard();
  NodeBoard(const NodeBoard&) = delete;
  NodeBoard& operator=(const NodeBoard&) = delete;

  /// Publishes what this rank waits for, until end_wait() is called by the same waiter. If several
  /// threads wait, the first wait in this mesh is published, and if there is none, the first one in
  /// another mesh.
  /// @param waiter      Identifies the wait.
  /// @param wait        Its point is the key of the wait point, or 0 if the ranks do not wait for
  ///                    each other there. Its ranks are for the record alone, and empty for calls
  ///                    of groups.
  /// @param is_of_mesh  Whether it is a wait in this mesh.
  void publish(const void* waiter, const record::Wait& wait, bool is_of_mesh);
  void end_wait(const void* waiter);
  /// Publishes that this rank has closed or destroyed its mesh, and releases its lock.
  void leave(Presence how, const std::string& reason = {});
  /// Returns whether leave() has not been called.
  [[nodiscard]] bool is_open() const { return own_.is_open(); }

  // The members of the board meet before they close the mesh. If one of them has failed, all of
  // them stay, and may try again.
  /// Tells the others that this rank closes the mesh, or that it cannot.
  /// @param balance  Of its messages; see MessageLedger.
  void begin_close(bool has_failed, std::uint64_t balance);
  /// Returns the sum of the balances. Valid after all_close() has returned true.
  [[nodiscard]] std::uint64_t balance_of_all() const;
  /// Returns whether all members have called begin_close() as often as this one, or one of them has
  /// given up.
  [[nodiscard]] bool all_close() const;
  /// Returns the ranks that have not called begin_close() as often as this one.
  [[nodiscard]] std::vector<int> not_closing() const;
  /// Tells the others, now and when they come later, that this rank has stopped waiting for them.
  /// Returns false if all have come meanwhile: then the close goes on.
  [[nodiscard]] bool give_up_close();
  /// The place of the first rank that has given up; nothing if none has.
  [[nodiscard]] std::optional<std::size_t> who_gave_up_close() const;
  /// Returns whether a rank cannot close the mesh. Valid after all_close() has returned true.
  [[nodiscard]] bool has_failed_to_close() const;

  [[nodiscard]] Rank self() const { return self_; }
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  /// Returns how many of the ranks are members of the mesh; they come before the spare ones.
  [[nodiscard]] std::size_t members() const { return members_; }
  [[nodiscard]] const std::shared_ptr<Recorder>& recorder() const { return recorder_; }
  /// Returns what a rank does, or nothing if it has no area. Costs a few system calls.
  [[nodiscard]] std::optional<RankStatus> look(Rank rank) const;
  /// Returns whether a rank's process has ended without closing the mesh, or an exception has
  /// destroyed its mesh. Costs two system calls.
  [[nodiscard]] bool has_failed(Rank rank) const;
  /// Returns whether a rank has destroyed its mesh without close(), and not by an exception.
  [[nodiscard]] bool has_destroyed(Rank rank) const;
  /// Returns true once per rank, on one rank of the node: the caller then reports the end.
  [[nodiscard]] bool claim_end_report(Rank rank) const;
  /// Returns whether the caller has to report a stall that began at this time. The result is false
  /// if another rank of the node has reported all ranks since then.
  [[nodiscard]] bool claim_stall_report(std::int64_t since) const;
  /// Returns true once: the first error of this rank contains a diagnosis.
  [[nodiscard]] bool claim_diagnosis() const { return !is_diagnosed_.exchange(true); }

  // Slots are numbered in the order of ranks().
  [[nodiscard]] std::size_t own_slot() const { return own_slot_; }
  [[nodiscard]] std::optional<std::size_t> index_of(Rank rank) const;
  [[nodiscard]] std::optional<std::size_t> index_of(const ProcessIdentity& process) const;
  [[nodiscard]] RankArea& area(std::size_t slot) const;
  [[nodiscard]] RankArea& own() const { return own_; }

  /// The watchdog calls this function regularly; it also relates the clock of the record.
  /// @return For how long the rank has been in one call that MPI carries, in seconds; 0 if it is in
  ///         none.
  double watch_call();
  /// The word of the mesh about its losses; see LossWatch.
  [[nodiscard]] std::atomic<std::uint64_t>& losses() const;
  /// When a rank of this node has heard a neighbour of the node; see LossLink.
  [[nodiscard]] std::atomic<std::int64_t>& heard(std::size_t neighbour) const;
  /// Returns whether a rank does not take part in its mesh any more: it has left the mesh in any
  /// way, or its process has ended. Costs two system calls.
  [[nodiscard]] bool is_gone(std::size_t slot) const;
  /// Closes the descriptor in a child process after fork(), where the lock would outlive this rank.
  void close_descriptor() noexcept;

  /// Returns the time in nanoseconds. All processes of a node have the same clock.
  static std::int64_t now();

 private:
  [[nodiscard]] bool is_locked(std::size_t slot) const;
  [[nodiscard]] bool has_ended(std::size_t slot) const;

  std::shared_ptr<void> owner_;
  std::byte* memory_;
  int descriptor_;
  std::vector<Rank> ranks_;
  std::size_t members_;
  Rank self_;
  std::size_t own_slot_;
  RankArea& own_;
  std::uint64_t closes_ = 0;   // begun by this rank
  std::uint64_t balance_ = 0;  // in the last of them
  std::shared_ptr<Recorder> recorder_;
  struct ShownWait {
    const void* waiter;
    record::Wait wait;
  };
  void show(const record::Wait& wait);
  std::mutex mutex_;  // of the waits in this mesh and in others
  std::optional<ShownWait> here_, elsewhere_;
  mutable std::atomic<bool> is_diagnosed_{false};
  std::uint64_t watched_ = 0;  // the sequence that watch_call() has seen last
  std::int64_t watched_since_ = 0;
};

/// Returns `; others on this node: ` and what they do; empty if there are none.
/// @param but  Ranks that are left out, besides this rank.
std::string others_on_node(const NodeBoard& board, const RankNames& names,
                           const std::vector<Rank>& but);

}  // namespace rankmesh::detail
