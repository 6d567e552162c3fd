// SPDX-License-Identifier: BSD-3-Clause
// A point in time after which a wait ends with a TimeoutError.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <type_traits>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// A point in time after which a wait ends with a TimeoutError. A deadline can be copied, and
/// several threads can read it safely.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;         ///< The clock of all deadlines.
  using Duration = std::chrono::duration<double>;  ///< A duration in seconds.

  /// Starts a deadline.
  /// @param after  the time from now until the deadline, in seconds. A deadline of 1e9 seconds
  /// (thirty years) or more never passes.
  explicit Deadline(Duration after)
      : after_{after},
        at_{after.count() < longest
                ? Clock::now() + std::chrono::duration_cast<Clock::duration>(after)
                : Clock::time_point::max()} {}

  /// Returns whether the deadline has passed.
  [[nodiscard]] bool passed() const { return Clock::now() >= at_; }
  /// Returns the remaining time in seconds. The result is 0 after the deadline, and it is at most
  /// 1e9.
  [[nodiscard]] Duration left() const {
    return at_ == Clock::time_point::max() ? Duration{longest}
                                           : std::max(Duration{0}, Duration{at_ - Clock::now()});
  }
  /// Returns the number of seconds that was passed to the constructor. Messages print this number.
  [[nodiscard]] double seconds() const { return after_.count(); }

 private:
  static constexpr double longest = 1e9;  // thirty years

  Duration after_;
  Clock::time_point at_;
};

/// Checks that a duration is positive.
/// @param name  the name of the option that contains the duration. The error message prints this
/// name.
/// @throws UsageError if the duration is zero, negative or NaN.
RANKMESH_API void require_positive(Deadline::Duration duration, const char* name);

/// Returns the default timeout of waits. It is the value of the environment variable
/// `RANKMESH_TIMEOUT` in seconds, or 600 seconds if the variable is unset or empty.
/// @throws UsageError if the value of the variable is not a positive number of at most 1e9.
RANKMESH_API Deadline::Duration default_timeout();

/// A time limit in an option: a std::chrono::duration, or nothing.
class OptionalDuration : public std::optional<Deadline::Duration> {
 public:
  using std::optional<Deadline::Duration>::optional;
  /// Sets the limit, or none.
  OptionalDuration(std::optional<Deadline::Duration> limit) : optional{limit} {}
  /// @cond  This constructor only refuses numbers, which do not say their unit.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  OptionalDuration(Number) {
    static_assert(!std::is_arithmetic_v<Number>,
                  "a time needs a unit: write std::chrono::seconds{5}");
  }
  /// @endcond
};

}  // namespace rankmesh
