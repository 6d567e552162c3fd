// SPDX-License-Identifier: BSD-3-Clause
// A time limit for NCCL calls that block.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/abort.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Ends NCCL calls on blocking communicators that take longer than their time limit, and all
/// communicators of a mesh if its owner asks for that. A thread checks several times per second
/// whether a call is in progress; docs/devices.md ("Calls that block") says what it aborts. A call
/// costs two atomic operations, and starts no thread.
///
/// NCCL frees a communicator at the end of an abort, and must not do so while a call uses it.
/// Therefore the abort is released only after the call has returned. Calls on communicators that do
/// not block have no limit here, because rankmesh polls them; they are watched so that an abort of
/// all communicators waits for their return.
///
/// Thread safety: one thread at a time makes calls that are watched.
class RANKMESH_API CallWatch {
 public:
  /// The mesh, as far as the thread of the watch needs it. The thread calls all functions.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Returns why all communicators must be aborted now; empty if there is no reason.
    virtual std::string reason_to_abort() = 0;
    /// Begins to abort all communicators of the mesh.
    virtual std::unique_ptr<Abort> begin_abort(const std::string& why) = 0;
    /// Returns whether CUDA graphs hold operations of the group with this name.
    virtual bool is_in_graphs(const std::string& name) = 0;
    /// Takes a report of an abnormal end, for the log.
    virtual void report(const std::string& text) noexcept = 0;
    /// Takes the names of communicators that were left behind, and reports them.
    virtual void note_left_behind(const std::string& names) noexcept = 0;
  };

  /// A limit that never passes.
  static constexpr Deadline::Duration no_limit{1e9};
  /// The longest pause between two checks, if the program says nothing else.
  static constexpr Deadline::Duration usual_pause{0.1};

  /// Creates a watch for the calls on one device. The arguments must outlive it.
  CallWatch(const Library& library, int device, Owner& owner)
      : library_{library}, device_{device}, owner_{owner} {}
  /// Ends the thread. No call may be in progress.
  ~CallWatch() { stop(); }
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// Starts the thread if it does not run yet. Without the thread, and before NCCL 2.22, whose
  /// aborts free a communicator under a call, calls have no time limit.
  /// @param pause  The longest pause between two checks.
  void start(Deadline::Duration pause = usual_pause);
  /// Ends the thread, if it runs.
  void stop();

  /// Waits until the thread does not abort communicators, for at most `limit`. Afterwards, it
  /// aborts all of them only if its owner has a reason again.
  void wait_for_abort_of_all(Deadline::Duration limit);

  /// Makes a call that may block.
  /// @param comms  The communicators that the call uses. If the program owns all of them, the call
  /// has no limit, because they are not aborted.
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

  // The parts of run(), for calls that other calls of the thread precede (Batch).
  /// Begins a call that has no limit yet.
  void enter() { enter({}, no_limit); }
  /// Sets the communicators and the limit of the call that enter() has begun. `comms` must stay
  /// valid until exit(). Does nothing if communicators are being aborted: the thread must leave
  /// NCCL's group before exit() waits for the abort and throws.
  void limit(std::span<Communicator* const> comms, Deadline::Duration limit);
  /// Ends the call.
  /// @throws TimeoutError if its communicators were aborted.
  void exit() {
    if (leave()) [[unlikely]]
      throw_timeout();
  }

 private:
  // The lowest bits of `state_`; the other bits number the calls.
  static constexpr std::uint64_t inside = 1, ending = 2, next_call = 4;

  void enter(std::span<Communicator* const> comms, Deadline::Duration limit) {
    comms_ = comms;
    limit_.store(limit_of(comms, limit), std::memory_order_release);
    if ((state_.fetch_or(inside) & ending) != 0) [[unlikely]] {
      wait_for_abort();
      throw_timeout();
    }
  }
  // Communicators of the program have no limit. The thread does not ask them, because a call may
  // return, and its communicators may end, while the thread looks at it.
  static double limit_of(std::span<Communicator* const> comms, Deadline::Duration limit) {
    for (const Communicator* comm : comms)
      if (comm->is_owned()) return limit.count();
    return no_limit.count();
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
  [[noreturn]] void throw_timeout();
  void watch();
  [[nodiscard]] bool aborts_under_calls() const;
  void end_call();
  void end_all(const std::string& why);
  void finish(Abort& own, Abort* all);

  const Library& library_;
  const int device_;
  Owner& owner_;
  std::atomic<double> pause_{0};
  std::atomic<std::uint64_t> state_{0};
  std::atomic<double> limit_{0};
  std::span<Communicator* const> comms_;  // read by the thread only while the call cannot leave

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool is_aborting_ = false;
  bool has_left_ = false;  // the call that the watch ends has returned
  // What a call that the watch ends throws.
  struct {
    std::string message, hint;
  } error_;
  std::thread thread_;
};

}  // namespace rankmesh::nccl
