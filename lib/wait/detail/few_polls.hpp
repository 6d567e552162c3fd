// SPDX-License-Identifier: BSD-3-Clause
// The polls before a wait.
#pragma once

#include <sched.h>

#include <chrono>

#include "base/detail/pause.hpp"

namespace rankmesh::detail {

/// Pauses between the polls that a caller makes before it begins a wait, in which it shows the
/// other ranks that it waits. First the caller keeps its core. Then it yields it, because the ranks
/// for which it waits may need it. The polls end after a number of yields, or earlier if they take
/// long: if many processes share a core, a yield lasts for milliseconds. A clock is read at every
/// fourth yield only.
class FewPolls {
 public:
  /// @param pauses  How often the caller keeps its core.
  /// @param yields  How often it then yields it.
  FewPolls(int pauses, int yields) : pauses_{pauses}, yields_{yields} {}
  /// Creates the pauses of an operation that is polled by itself, so that no other operation makes
  /// progress meanwhile. @param has_own_cores  Whether the members of its group have a core each.
  explicit FewPolls(bool has_own_cores) : FewPolls{has_own_cores ? 1000 : 8, 200} {}

  /// Pauses, and returns true if the caller shall poll once more. Returns false if it shall wait.
  [[nodiscard]] bool next() {
    if (--pauses_ >= 0) {
      pause();
      return true;
    }
    if (--yields_ < 0 || (yields_ % 4 == 0 && is_late())) return false;
    sched_yield();
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest{10};

  [[nodiscard]] bool is_late() {
    const auto now = Clock::now();
    if (end_ == Clock::time_point{}) end_ = now + longest;
    return now >= end_;
  }

  int pauses_, yields_;
  Clock::time_point end_{};  // set at the first look at the clock
};

}  // namespace rankmesh::detail
