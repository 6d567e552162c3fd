// SPDX-License-Identifier: BSD-3-Clause
// The activities of the ranks of a node, which all of these ranks can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/detail/process_identity.hpp"
#include "board_slot.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "record/detail/recorder.hpp"

namespace rankmesh::detail {

/// What the board says about a rank.
struct RankActivity {
  enum class Kind : std::uint8_t {
    silent,     ///< The rank is alive, and nothing more is known.
    waits,      ///< It waits in `text`.
    in_call,    ///< It is in the call `text`, which MPI carries.
    outside,    ///< It is not in rankmesh.
    stopped,    ///< A signal or a debugger has stopped it.
    ended,      ///< Its process has ended, and it had not closed the mesh.
    failed,     ///< An exception has destroyed its mesh; `text` is the reason, or empty.
    destroyed,  ///< It has destroyed its mesh without close().
    closed,     ///< It has closed its mesh.
  };
  Kind kind = Kind::silent;
  std::uint64_t key = 0;  ///< Of the wait point, if it waits.
  std::string text{};
  double seconds = 0;  ///< For how long it has been there; 0 if it is not known.
};

/// What a rank waits for, as it tells the others.
struct WaitNotice {
  std::uint64_t key = 0;  ///< Of the wait point; 0 if the ranks do not wait for each other there.
  std::string activity{};
  /// For the record: the ranks of the mesh that must reach the point, or for which the rank waits;
  /// see record::Wait. Empty for calls of groups.
  RankSet ranks{};
};

/// What the ranks of a deadlock throw, and when.
struct Deadlock {
  std::string text{};
  std::int64_t at = 0;  ///< See NodeBoard::now().
};

/// One slot per rank of a mesh on one node, in memory that these ranks share. A rank publishes in
/// its slot what it waits for. It also holds a lock on the byte of its slot in the file behind the
/// memory; the system releases the lock when the process ends. Therefore the lock shows whether a
/// rank is alive, even between containers, where process ids have no meaning.
///
/// Thread safety: any thread may call any function.
class RANKMESH_API NodeBoard {
 public:
  /// Returns the bytes that a board of some ranks needs.
  static std::size_t bytes(std::size_t ranks);

  /// Publishes this rank, and takes its lock. Local.
  /// @param memory      Zeroed memory that the ranks share, or that belongs to this rank alone.
  /// @param owner       Keeps the memory.
  /// @param descriptor  A file behind the memory, opened by this process. The board closes it. -1
  ///                    if there is none; then the rank has no lock.
  /// @param ranks       The ranks of the mesh that have slots, in ascending order.
  /// @param recorder    Also gets what this rank publishes; may be null.
  NodeBoard(std::byte* memory, std::shared_ptr<void> owner, int descriptor, std::vector<Rank> ranks,
            Rank self, std::shared_ptr<Recorder> recorder = nullptr);
  ~NodeBoard();
  NodeBoard(const NodeBoard&) = delete;
  NodeBoard& operator=(const NodeBoard&) = delete;

  /// Publishes what this rank waits for, until clear() is called with the returned number. If a
  /// wait of this rank is already published, it stays published, and the result is 0.
  std::uint64_t publish(const WaitNotice& wait);
  void clear(std::uint64_t number);
  /// Publishes that this rank has closed or destroyed its mesh, and releases its lock.
  void leave(Presence how, const std::string& reason = {});

  /// Returns whether leave() has not been called.
  [[nodiscard]] bool is_open() const;

  // The ranks of the board meet before they close the mesh. If one of them has failed, all of them
  // stay, and may try again.
  /// Tells the others that this rank closes the mesh, or that it cannot.
  void begin_close(bool has_failed);
  /// Returns whether all ranks have called begin_close() as often as this one.
  [[nodiscard]] bool all_close() const;
  /// Returns whether a rank cannot close the mesh. Valid after all_close() has returned true.
  [[nodiscard]] bool has_failed_to_close() const;

  /// Returns a number for a name in this rank's slot, for BoardEntry. Equal names have equal
  /// numbers. Local.
  std::uint32_t label(std::string_view name);
  /// Returns the name with this number in a slot, or "a group" if the slot had no place for it.
  [[nodiscard]] std::string label_text(std::size_t slot, std::size_t label) const;
  /// The call that this rank is in; see BoardEntry.
  [[nodiscard]] PublishedCall& own_call() noexcept { return *own_call_; }

  [[nodiscard]] Rank self() const { return self_; }
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  /// Returns what a rank does, or nothing if it has no slot. Costs a few system calls.
  [[nodiscard]] std::optional<RankActivity> look(Rank rank) const;
  /// Returns whether a rank's process has ended without closing the mesh, or an exception has
  /// destroyed its mesh. Costs two system calls.
  [[nodiscard]] bool has_failed(Rank rank) const;
  /// Returns true once per rank, on one rank of the node: the caller then reports the end.
  [[nodiscard]] bool claim_end_report(Rank rank) const;
  /// Returns whether the caller has to report a stall that began at this time. The result is false
  /// if another rank of the node has reported all ranks since then.
  [[nodiscard]] bool claim_stall_report(std::int64_t since) const;

  // Slots are numbered in the order of ranks().
  [[nodiscard]] std::size_t own_slot() const { return own_slot_; }
  [[nodiscard]] std::optional<std::size_t> index_of(Rank rank) const;
  [[nodiscard]] std::optional<std::size_t> index_of(const ProcessIdentity& process) const;
  [[nodiscard]] ProcessIdentity identity_of(std::size_t slot) const;
  [[nodiscard]] bool is_open(std::size_t slot) const;
  /// Returns the activity in which a rank waits; empty if it does not wait.
  [[nodiscard]] std::string wait_of(std::size_t slot) const;
  /// For whom a rank waits; see DeadlockWatch.
  [[nodiscard]] PublishedNeeds& needs(std::size_t slot) const;
  /// What the device of a rank has to do.
  [[nodiscard]] PublishedDeviceWork& device_work(std::size_t slot) const;
  /// Tells the ranks of these slots that their waits are part of a deadlock, as long as their
  /// needs have these versions.
  void report_deadlock(const std::vector<std::pair<std::size_t, std::uint64_t>>& waits,
                       const Deadlock& deadlock);
  /// Returns the deadlock that another rank has found and that this rank's wait is part of.
  [[nodiscard]] std::optional<Deadlock> found_deadlock() const;

  /// Stores in which call this rank is. The watchdog calls this function regularly.
  /// @return For how long the rank has been in one call that MPI carries, in seconds; 0 if it is in
  ///         none.
  double watch_call();
  /// Closes the descriptor in a child process after fork(), where the lock would outlive this rank.
  void close_descriptor() noexcept;

  /// Returns the time in nanoseconds. All processes of a node have the same clock.
  static std::int64_t now();

 private:
  [[nodiscard]] BoardSlot* slot_of(Rank rank) const;
  [[nodiscard]] bool is_locked(std::size_t slot) const;
  [[nodiscard]] bool has_ended(std::size_t slot) const;
  [[nodiscard]] std::optional<RankActivity> call_of(const BoardSlot& slot) const;

  std::shared_ptr<void> owner_;
  std::byte* memory_;
  int descriptor_;
  std::vector<Rank> ranks_;
  Rank self_;
  ProcessIdentity identity_ = ProcessIdentity::own();
  PublishedCall* own_call_;
  std::size_t own_slot_;
  std::uint64_t closes_ = 0;  // begun by this rank
  std::shared_ptr<Recorder> recorder_;
  std::mutex mutex_;  // of the wait that is published, and of the labels
  std::uint64_t published_ = 0;
  std::uint64_t last_number_ = 0;
};

/// Publishes that this rank is in a call that MPI carries, as long as this object exists. It reads
/// no clock and formats nothing: the watchdog notices how long the call takes. Entries do not nest.
class BoardEntry {
 public:
  /// @param label   The label of the group; see NodeBoard::label().
  /// @param number  The number of a collective in its group; for a message, a packed
  ///                PublishedMessage.
  BoardEntry(NodeBoard& board, std::uint32_t label, Operation operation,
             std::uint64_t number) noexcept
      : BoardEntry{board.own_call(), label, operation, number} {}
  /// @param call  The board's own_call(), which a caller keeps to save instructions.
  BoardEntry(PublishedCall& call, std::uint32_t label, Operation operation,
             std::uint64_t number) noexcept
      : call_{call}, sequence_{call_.sequence.load(std::memory_order_relaxed)} {
    call_.what.store(std::uint64_t{label} << 8 | static_cast<std::uint64_t>(operation),
                     std::memory_order_relaxed);
    call_.number.store(number, std::memory_order_relaxed);
    call_.sequence.store(sequence_ + 1, std::memory_order_release);
  }
  ~BoardEntry() { call_.sequence.store(sequence_ + 2, std::memory_order_release); }
  BoardEntry(const BoardEntry&) = delete;
  BoardEntry& operator=(const BoardEntry&) = delete;

 private:
  PublishedCall& call_;
  std::uint64_t sequence_;
};

}  // namespace rankmesh::detail
