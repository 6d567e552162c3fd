// A point in time after which waiting ends with a TimeoutError.
#pragma once

#include <algorithm>
#include <chrono>

#include "rankmesh/export.hpp"

namespace rankmesh {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::duration<double>;

  /// `after` seconds from now; what the clock cannot hold is never reached.
  explicit Deadline(Duration after)
      : after_{after},
        at_{after.count() < longest
                ? Clock::now() + std::chrono::duration_cast<Clock::duration>(after)
                : Clock::time_point::max()} {}

  [[nodiscard]] bool passed() const { return Clock::now() >= at_; }
  /// What is left of it; at most thirty years.
  [[nodiscard]] Duration left() const {
    return at_ == Clock::time_point::max() ? Duration{longest}
                                           : std::max(Duration{0}, Duration{at_ - Clock::now()});
  }
  /// The time that was granted, for messages.
  [[nodiscard]] double seconds() const { return after_.count(); }

 private:
  static constexpr double longest = 1e9;  // thirty years

  Duration after_;
  Clock::time_point at_;
};

/// @throws UsageError, naming `what`, where it is no positive number of seconds.
RANKMESH_API void require_positive(Deadline::Duration duration, const char* what);

/// How long rankmesh's own waits last where nothing else is asked for: `RANKMESH_TIMEOUT`
/// (seconds), else 600.
/// @throws UsageError where the variable is not a positive number.
RANKMESH_API Deadline::Duration default_timeout();

}  // namespace rankmesh
