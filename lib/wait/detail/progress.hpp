// SPDX-License-Identifier: BSD-3-Clause
// Progress that every wait and every test() makes, regardless of what it waits for.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "rankmesh/wait/backoff.hpp"

namespace rankmesh::detail {

/// Keeps a second thread out of a mesh. A mesh is free, in a call, or at a poll: a wait of this
/// mesh has stopped between two polls, and its thread advances what is in flight. At a poll, this
/// thread may enter the mesh again: calls of the mesh do nothing between two polls.
struct MeshLock {
  std::atomic_flag busy;                   ///< Set unless the mesh is free.
  std::atomic<std::int32_t> guests{0};     ///< Threads that enter only to advance operations.
  std::atomic<std::uint32_t> visits{0};    ///< How often threads have come as guests.
  std::atomic<std::thread::id> guest{};    ///< The one that has entered.
  std::atomic<std::thread::id> at_poll{};  ///< The thread whose wait is at a poll.

  /// Enters a mesh that is at a poll of this thread. The mesh is in a call afterwards.
  bool enter_at_poll() noexcept {
    if (at_poll.load() != std::this_thread::get_id()) return false;
    at_poll.store(std::thread::id{});
    return true;
  }
  /// Ends what enter_at_poll() has begun.
  void return_to_poll() noexcept { at_poll.store(std::this_thread::get_id()); }
  /// Enters a mesh that is free, or that becomes free when a guest leaves. Returns false if the
  /// mesh is in a call, or if this thread is the guest.
  bool enter_after_guests() noexcept;
};

/// Opens a mesh that is in a call of this thread while the call waits.
class AtPoll {
 public:
  /// @param lock  Null if there is no mesh; nothing happens if the mesh is free.
  explicit AtPoll(MeshLock* lock) : lock_{lock} {
    if (lock_ != nullptr && !lock_->busy.test(std::memory_order_relaxed)) lock_ = nullptr;
    if (lock_ != nullptr) before_ = lock_->at_poll.exchange(std::this_thread::get_id());
  }
  ~AtPoll() {
    if (lock_ != nullptr) lock_->at_poll.store(before_);
  }
  AtPoll(const AtPoll&) = delete;
  AtPoll& operator=(const AtPoll&) = delete;

 private:
  MeshLock* lock_;
  std::thread::id before_{};  // this thread, if a wait of the mesh is at a poll already
};

/// As long as an object of this class exists, this thread is in an operation, or in a function of
/// the program that rankmesh has called. Its tests then advance only their own operations, and its
/// waits advance no operations that call functions of the program: such a function could need the
/// mesh whose operation this thread is in.
class InFunction {
 public:
  InFunction() noexcept;
  ~InFunction();
  InFunction(const InFunction&) = delete;
  InFunction& operator=(const InFunction&) = delete;
  [[nodiscard]] static bool is_entered() noexcept;

 private:
  bool before_;
};

/// Advances all operations in flight that this thread has issued, in all meshes, a few of them at a
/// time. Every wait calls it at each poll, and every test() that finds nothing complete. An
/// operation that fails keeps its error for its own Work. Does not block, unless a function of the
/// program does.
/// @param waiting  The mesh whose wait is at a poll; null if it is none, or if the mesh is free.
void advance_everything(MeshLock* waiting) noexcept;

/// Does the same for a test(). A loop that does nothing else also lets other processes have the
/// core, because they may have to do their part first.
void advance_between_tests() noexcept;

/// Sets what advance_everything() calls. The layer of the groups calls this function, because this
/// layer does not know operations.
void set_advance(void (*advance)(MeshLock* waiting)) noexcept;

/// Makes the calls of all open meshes leave the fast path, once and for ever, because ranks of one
/// of them are lost.
void leave_fast_path() noexcept;
/// Sets what leave_fast_path() calls.
void set_leave_fast_path(void (*leave)()) noexcept;

}  // namespace rankmesh::detail
