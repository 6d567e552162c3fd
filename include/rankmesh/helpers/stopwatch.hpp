// SPDX-License-Identifier: BSD-3-Clause
// Measures times, and compares them between the members of a group.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh {

/// The least, the mean and the greatest time that the members of a group have measured, in seconds,
/// and the ranks that measured the least and the greatest time.
struct TimeSpread {
  double least = 0;  ///< seconds
  double mean = 0;   ///< seconds
  double most = 0;   ///< seconds
  Rank least_at{};   ///< the first rank that measured `least`
  Rank most_at{};    ///< the first rank that measured `most`
};
/// Returns the spread in words: `least 1.20 ms (rank 3), mean 1.50 ms, most 2.00 ms (rank 0)`.
[[nodiscard]] RANKMESH_API std::string to_string(const TimeSpread& spread);

/// Adds up the times of a part of a program, on the host:
///
///     Stopwatch forward;
///     for (step ...) { const auto lap = forward.lap(); model.forward(); }
///     print_once(mesh, "forward: " + to_string(forward.spread(mesh["dp"])));
///
/// Work on a device continues after the call that queues it has returned. To include this work in a
/// lap, wait for its stream before the end of the lap. Thread safety: none; each thread needs its
/// own Stopwatch.
class RANKMESH_API Stopwatch {
 public:
  /// Ends a lap when it is destroyed. The Stopwatch must exist until then.
  class Lap {
   public:
    /// Begins a lap.
    explicit Lap(Stopwatch& watch) : watch_{watch} { watch_.start(); }
    ~Lap() { watch_.end_lap(); }
    Lap(const Lap&) = delete;
    Lap& operator=(const Lap&) = delete;

   private:
    Stopwatch& watch_;
  };

  /// Begins a lap that ends at the end of the block.
  [[nodiscard]] Lap lap() { return Lap{*this}; }
  /// Begins a lap. If a lap is already running, it begins again from this moment.
  void start() { begin_ = Clock::now(); }
  /// Ends the lap and adds its time.
  /// @throws UsageError if no lap runs.
  void stop();
  /// Sets the time and the number of laps to 0. A lap that runs goes on.
  void reset() {
    seconds_ = 0;
    laps_ = 0;
  }

  /// Returns the time of all laps that have ended, in seconds.
  [[nodiscard]] double seconds() const { return seconds_; }
  /// Returns the number of laps that have ended.
  [[nodiscard]] std::int64_t laps() const { return laps_; }
  /// Returns the least, the mean and the greatest seconds() of the members. Collective over the
  /// group; blocks. Cost: an all_gather of 8 bytes per member.
  [[nodiscard]] TimeSpread spread(GroupCoordinator& group) const;

 private:
  using Clock = std::chrono::steady_clock;
  void end_lap() noexcept;

  std::optional<Clock::time_point> begin_;  // nothing if no lap runs
  double seconds_ = 0;
  std::int64_t laps_ = 0;
};

/// Returns the least, the mean and the greatest of a time that each member has measured itself.
/// Collective over the group; blocks.
/// @param seconds  The time of this member.
[[nodiscard]] RANKMESH_API TimeSpread spread(GroupCoordinator& group, double seconds);

}  // namespace rankmesh
