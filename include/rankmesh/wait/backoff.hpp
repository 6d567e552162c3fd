// SPDX-License-Identifier: BSD-3-Clause
// Pauses between two polls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "rankmesh/base/deadline.hpp"

namespace rankmesh {

/// Pauses between the polls of one wait: it spins first, then yields the core to other threads, and
/// then sleeps. Create a new object for each wait. Without options every pause yields.
///
/// Thread safety: one thread at a time.
class Backoff {
 public:
  static constexpr std::int64_t unlimited = INT64_MAX;

  struct Options {
    std::int64_t spins = 0;                ///< The number of pauses that spin.
    int spin_length = 0;                   ///< Iterations of the empty loop in each spinning pause.
    std::int64_t yields = unlimited;       ///< The number of pauses that yield, after the spins.
    std::chrono::microseconds sleep{100};  ///< The length of all later pauses.
  };

  Backoff() = default;
  explicit Backoff(const Options& options) : options_{options} {}

  /// Returns whether the next pause spins.
  [[nodiscard]] bool is_spinning() const noexcept { return pauses_ < options_.spins; }

  /// Waits for a moment.
  void pause() {
    if (is_spinning()) {
      // The signal fence keeps the compiler from removing the loop.
      for (int i = 0; i < options_.spin_length; ++i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      ++pauses_;
    } else if (pauses_ - options_.spins < options_.yields) {
      std::this_thread::yield();
      ++pauses_;
    } else {
      std::this_thread::sleep_for(options_.sleep);
    }
  }

 private:
  Options options_{};
  std::int64_t pauses_ = 0;
};

/// Polls until `done` returns true or the deadline has passed. Blocks; does not communicate.
/// @param done  A function that is called at least once, and once more after the deadline has
///              passed.
/// @return Whether `done` returned true.
template <class Condition>
bool poll_until(Condition&& done, const Deadline& deadline, Backoff backoff = Backoff{}) {
  while (!done()) {
    if (deadline.passed()) return done();
    backoff.pause();
  }
  return true;
}

}  // namespace rankmesh
