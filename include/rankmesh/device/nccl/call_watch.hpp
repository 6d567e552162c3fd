// SPDX-License-Identifier: BSD-3-Clause
// A time limit for NCCL calls that block.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Ends NCCL calls on blocking communicators that take longer than their time limit. A call takes
/// long if NCCL waits for other ranks, for example to connect to them.
///
/// A thread checks several times per second whether a call is in progress. If the limit of the call
/// has passed, the thread aborts the communicators of the call. The call itself costs two atomic
/// operations, and starts no thread.
///
/// NCCL frees a communicator at the end of an abort, and must not do so while a call uses it.
/// Therefore the thread aborts inside an NCCL group. There, ncclCommAbort immediately sets the flag
/// that ends the call. NCCL frees the communicator only when the group ends, and the thread ends
/// the group only after the call has returned. NCCL works in this way since 2.23 (ncclCommAbort in
/// src/init.cc).
///
/// Thread safety: one thread at a time makes calls that are watched.
class RANKMESH_API CallWatch {
 public:
  /// Creates a watch for the calls on one device. `library` must outlive it.
  CallWatch(const Library& library, int device) : library_{library}, device_{device} {}
  /// Ends the thread. No call may be in progress.
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// Starts the thread if it does not run yet. Without the thread, calls have no time limit.
  void start();

  /// Makes a call that may block.
  /// @param comms  The communicators that the call uses. Adopted communicators are not aborted.
  /// @param call   The call. It throws NcclError if NCCL reports an error.
  /// @throws TimeoutError if the limit passed. The communicators are aborted then.
  template <class Function>
  void run(std::span<Communicator* const> comms, Deadline::Duration limit, Function&& call) {
    enter(comms, limit);
    try {
      call();
    } catch (...) {
      if (!leave()) throw;
      throw_timeout();
    }
    if (leave()) [[unlikely]]
      throw_timeout();
  }

 private:
  // The lowest bits of `state_`; the other bits number the calls.
  static constexpr std::uint64_t inside = 1, ending = 2, next_call = 4;

  void enter(std::span<Communicator* const> comms, Deadline::Duration limit) noexcept {
    comms_ = comms;
    limit_.store(limit.count(), std::memory_order_relaxed);
    const std::uint64_t state = state_.load(std::memory_order_relaxed);
    state_.store(state | inside, std::memory_order_release);
  }
  // Returns whether the watch has aborted the communicators of the call.
  bool leave() noexcept {
    std::uint64_t state = state_.load(std::memory_order_relaxed) & ~ending;
    if (state_.compare_exchange_strong(state, (state & ~inside) + next_call)) [[likely]]
      return false;
    wait_for_abort();
    return true;
  }
  void wait_for_abort() noexcept;
  [[noreturn]] void throw_timeout() const;
  void watch();
  void end_call() noexcept;

  const Library& library_;
  const int device_;
  std::atomic<std::uint64_t> state_{0};
  std::atomic<double> limit_{0};
  std::span<Communicator* const> comms_;  // read by the thread only while the call cannot leave

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool has_left_ = false;     // the call that the watch ends has returned
  bool has_aborted_ = false;  // its communicators are freed
  std::thread thread_;
};

}  // namespace rankmesh::nccl
