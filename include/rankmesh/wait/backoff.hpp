// SPDX-License-Identifier: BSD-3-Clause
// Pauses between polls.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

namespace detail {
/// Advances the operations in flight of this thread, see wait/detail/progress.hpp.
RANKMESH_API void advance_everything() noexcept;
}  // namespace detail

/// Pauses between the polls of one wait. The first pauses spin, the following pauses yield the core
/// to other threads, and all later pauses sleep, for a thousandth of the time that the wait has
/// lasted: at least 100 us and at most 500 us. So a long wait hardly ends later than without
/// pauses, and leaves the core to the ranks for which it waits, also where many ranks share a core.
/// A program creates a new object for each wait. Without options, every pause yields.
///
/// Only one thread at a time may use an object of this class.
class Backoff {
 public:
  /// A time, in the units of the steady clock.
  using Duration = std::chrono::steady_clock::duration;

  /// How the pauses change during a wait.
  struct Options {
    std::int64_t spins = 0;             ///< The number of pauses that spin.
    int spin_length = 0;                ///< The number of loop iterations in a pause that spins.
    Duration yields = Duration::max();  ///< After the spins, pauses yield for this time.
  };

  Backoff() = default;
  /// Creates the pauses of one wait.
  explicit Backoff(const Options& options) : options_{options} {}

  /// Returns whether the next pause spins.
  [[nodiscard]] bool is_spinning() const noexcept { return spins_ < options_.spins; }

  /// Waits for a moment.
  void pause() {
    if (is_spinning()) {
      // The signal fence keeps the compiler from removing the loop.
      for (int i = 0; i < options_.spin_length; ++i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      ++spins_;
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (begin_ == std::chrono::steady_clock::time_point{}) begin_ = now;
    const Duration waited = now - begin_;
    if (waited < options_.yields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::clamp<Duration>(
          waited / 1000, std::chrono::microseconds{100}, std::chrono::microseconds{500}));
    }
  }

 private:
  Options options_{};
  std::int64_t spins_ = 0;
  std::chrono::steady_clock::time_point begin_{};  // of the pauses that do not spin
};

/// Polls until `done` returns true or the deadline has passed. This function blocks. Meanwhile the
/// operations in flight of this thread make progress.
/// @param done  a function that returns true when the wait is over. It is called at least once, and
/// once more after the deadline has passed.
/// @return true if `done` returned true; false if the deadline passed first.
template <class Condition>
bool poll_until(Condition&& done, const Deadline& deadline, Backoff backoff = Backoff{}) {
  while (!done()) {
    if (deadline.passed()) return done();
    detail::advance_everything();
    backoff.pause();
  }
  return true;
}

}  // namespace rankmesh
