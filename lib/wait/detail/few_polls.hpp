// SPDX-License-Identifier: BSD-3-Clause
// The polls before a wait.
#pragma once

#include <chrono>

namespace rankmesh::detail {

/// Counts the polls that a caller makes before it begins a wait, in which it shows the other ranks
/// that it waits. The polls end after a number of them, or earlier if they take long: if many
/// processes share a core, a poll that yields lasts for milliseconds. It reads a clock at every
/// fourth poll only.
class FewPolls {
 public:
  /// @param most  The number of polls.
  explicit FewPolls(int most) : left_{most} {}

  /// Returns whether the caller polls once more.
  [[nodiscard]] bool next() {
    if (--left_ < 0) return false;
    if (left_ % 4 != 0) return true;
    const auto now = Clock::now();
    if (end_ == Clock::time_point{}) end_ = now + longest;
    return now < end_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest{10};

  int left_;
  Clock::time_point end_{};  // set at the first look at the clock
};

}  // namespace rankmesh::detail
