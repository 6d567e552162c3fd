// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/call_watch.hpp"

#include <algorithm>
#include <chrono>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/detail/patience.hpp"

namespace rankmesh::nccl {
namespace {

using Clock = std::chrono::steady_clock;

// The shortest pause between two checks of the thread, for calls that have a short limit.
constexpr Deadline::Duration shortest_pause{0.005};

}  // namespace

void CallWatch::start(Deadline::Duration pause) {
  pause_ = std::max(pause, shortest_pause).count();
  if (thread_.joinable()) return;
  thread_ = std::thread{[this] { watch(); }};
}

void CallWatch::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock{mutex_};
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void CallWatch::limit(std::span<Communicator* const> comms, Deadline::Duration limit) {
  if ((state_.fetch_add(next_call) & ending) != 0) return;  // the time begins now
  comms_ = comms;
  limit_.store(limit_of(comms, limit), std::memory_order_release);
}

void CallWatch::watch() {
  (void)cudaSetDevice(device_);
  std::uint64_t seen = 0;  // the call that was in progress at the previous check
  Clock::time_point since;
  Deadline::Duration pause{pause_};
  std::unique_lock lock{mutex_};
  while (!changed_.wait_for(lock, pause, [&] { return is_stopping_; })) {
    pause = Deadline::Duration{pause_};
    is_aborting_ = true;  // perhaps; see wait_for_abort_of_all()
    lock.unlock();
    const std::string why = owner_.reason_to_abort();
    if (!why.empty()) end_all(why);
    lock.lock();
    is_aborting_ = false;
    changed_.notify_all();
    if (!why.empty()) continue;
    std::uint64_t state = state_.load(std::memory_order_acquire);
    if ((state & inside) == 0) continue;
    const Deadline::Duration limit{limit_.load(std::memory_order_acquire)};
    pause = std::clamp(limit / 8, shortest_pause, Deadline::Duration{pause_});
    if (state != seen) {
      seen = state;
      since = Clock::now();
    } else if (Clock::now() - since >= limit && aborts_under_calls()) {
      is_aborting_ = true;
      if (!state_.compare_exchange_strong(state, state | ending)) {
        is_aborting_ = false;
        continue;
      }
      lock.unlock();
      end_call();
      lock.lock();
    }
  }
}

// Before 2.22, an abort frees the communicator at once, even under a call.
bool CallWatch::aborts_under_calls() const {
  constexpr int first_with_aborts_in_groups = 22200;
  return library_.version() >= first_with_aborts_in_groups;
}

// Ends the call in progress, which has reached its limit.
void CallWatch::end_call() {
  const std::string name = comms_.front()->name();
  const std::string message = fmt::format("NCCL's call on '{}' is still in progress after {} s",
                                          name, limit_.load(std::memory_order_relaxed));
  error_ = {message, "check what the other members do; the communicator was aborted"};
  Abort own{comms_, message, Abort::Frees::when_released};
  std::unique_lock lock{mutex_};
  std::unique_ptr<Abort> all;
  if (!changed_.wait_for(lock, rankmesh::detail::patience().aborted_call,
                         [&] { return has_left_; })) {
    lock.unlock();
    owner_.report(
        fmt::format("{}, although its communicator was aborted: it probably waits inside CUDA, "
                    "behind work of another communicator. All communicators are aborted now",
                    message));
    error_.hint = "check what the other members do; all communicators were aborted";
    all = owner_.begin_abort(message);
    lock.lock();
    changed_.wait(lock, [&] { return has_left_; });
  }
  lock.unlock();
  finish(own, all.get());
}

void CallWatch::end_all(const std::string& why) {
  error_ = {why, "all communicators were aborted: end the program, or open a new mesh"};
  const auto wait_for_call = [&, is_inside = (state_.fetch_or(ending) & inside) != 0] {
    std::unique_lock lock{mutex_};
    if (is_inside) changed_.wait(lock, [&] { return has_left_; });
  };
  if (!aborts_under_calls()) wait_for_call();  // such a call is polled, and ends at its limit
  const std::unique_ptr<Abort> all = owner_.begin_abort(why);
  wait_for_call();
  finish(*all, nullptr);
  owner_.report(why + ": all NCCL communicators of this rank were aborted");
}

void CallWatch::finish(Abort& own, Abort* all) {
  const auto is_in_graphs = [this](const std::string& name) { return owner_.is_in_graphs(name); };
  if (all != nullptr) all->release();
  std::string left_behind = own.wait(Abort::usual_limit(), is_in_graphs);
  if (all != nullptr)
    if (const std::string more = all->wait(Abort::usual_limit(), is_in_graphs); !more.empty())
      left_behind += (left_behind.empty() ? "" : ", ") + more;
  if (!left_behind.empty()) {
    error_.message += "; NCCL communicators were left behind: " + left_behind;
    owner_.note_left_behind(left_behind);
  }
  const std::lock_guard lock{mutex_};
  is_aborting_ = false;
  if (!has_left_) state_.fetch_and(~ending);  // no call waits for the end of the abort
  changed_.notify_all();
}

void CallWatch::wait_for_abort_of_all(Deadline::Duration limit) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, limit, [&] { return !is_aborting_; });
}

void CallWatch::wait_for_abort() noexcept {
  std::unique_lock lock{mutex_};
  has_left_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !is_aborting_; });
  has_left_ = false;
  state_.store((state_.load() & ~(inside | ending)) + next_call);
}

void CallWatch::throw_timeout() {
  const std::lock_guard lock{mutex_};
  throw TimeoutError{error_.message, error_.hint, {}};
}

}  // namespace rankmesh::nccl
