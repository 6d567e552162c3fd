// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/call_watch.hpp"

#include <algorithm>
#include <chrono>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace rankmesh::nccl {
namespace {

using Clock = std::chrono::steady_clock;

// The pause between two checks of the thread. It is shorter if a call has a short limit.
constexpr Deadline::Duration longest_pause{0.1};
constexpr Deadline::Duration shortest_pause{0.005};

}  // namespace

CallWatch::~CallWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock{mutex_};
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void CallWatch::start() {
  if (!thread_.joinable()) thread_ = std::thread{[this] { watch(); }};
}

void CallWatch::watch() {
  std::uint64_t seen = 0;  // the call that was in progress at the previous check
  Clock::time_point since;
  Deadline::Duration pause = longest_pause;
  std::unique_lock lock{mutex_};
  while (!changed_.wait_for(lock, pause, [&] { return is_stopping_; })) {
    std::uint64_t state = state_.load(std::memory_order_acquire);
    pause = longest_pause;
    if ((state & inside) == 0) continue;
    const Deadline::Duration limit{limit_.load(std::memory_order_relaxed)};
    pause = std::clamp(limit / 8, shortest_pause, longest_pause);
    if (state != seen) {
      seen = state;
      since = Clock::now();
    } else if (Clock::now() - since >= limit &&
               state_.compare_exchange_strong(state, state | ending)) {
      lock.unlock();
      end_call();
      lock.lock();
    }
  }
}

void CallWatch::end_call() noexcept {
  (void)cudaSetDevice(device_);  // otherwise NCCL would use device 0 in this thread
  (void)library_.GroupStart();
  for (Communicator* comm : comms_) comm->begin_abort();
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return has_left_; });
  lock.unlock();
  (void)library_.GroupEnd();
  for (Communicator* comm : comms_) comm->end_abort();
  lock.lock();
  has_left_ = false;
  has_aborted_ = true;
  changed_.notify_all();
}

void CallWatch::wait_for_abort() noexcept {
  std::unique_lock lock{mutex_};
  has_left_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return has_aborted_; });
  has_aborted_ = false;
  state_.store((state_.load() & ~(inside | ending)) + next_call);
}

void CallWatch::throw_timeout() const {
  throw TimeoutError{fmt::format("NCCL's call on '{}' is still in progress after {} s",
                                 comms_.front()->name(), limit_.load(std::memory_order_relaxed)),
                     "check what the other members do; the communicator was aborted",
                     {}};
}

}  // namespace rankmesh::nccl
