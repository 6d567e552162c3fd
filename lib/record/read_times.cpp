// SPDX-License-Identifier: BSD-3-Clause
// Converts the counter of a rank to the clock of node 0.
#include <algorithm>

#include "detail/image.hpp"

namespace rankmesh::record::detail {
namespace {

constexpr std::int64_t limit = std::int64_t{1} << 60;
// The counter and the clock of a pair are not read at the same moment. If two pairs are closer than
// this, the frequency is not precise enough for times after the pairs. Between the pairs, the error
// is not larger than the error of the pairs themselves.
constexpr double shortest = 1e6;
// Counters count between 1 MHz and 1 THz.
constexpr double fastest = 1e-3, slowest = 1e3;

Time limited(double nanoseconds) {
  return static_cast<Time>(
      std::clamp(nanoseconds, -static_cast<double>(limit), static_cast<double>(limit)));
}

Time sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return a > 0 ? limit : -limit;
  return std::clamp(result, -limit, limit);
}

// Returns a - b for counters, which may be far apart if the record was altered.
double difference(std::uint64_t a, std::uint64_t b) {
  return a >= b ? static_cast<double>(a - b) : -static_cast<double>(b - a);
}

}  // namespace

Clock::Clock(const format::Header& header)
    : opened_{header.first.nanoseconds.load(relaxed)}, offset_{header.clock_offset.load(relaxed)} {
  if (header.counter_is_clock == 1) {
    nanoseconds_per_count_ = 1;
    return;
  }
  counter_ = header.first.counter.load(relaxed);
  nanoseconds_ = opened_;
  const double time = static_cast<double>(header.last.nanoseconds.load(relaxed)) -
                      static_cast<double>(nanoseconds_);
  const double counts = difference(header.last.counter.load(relaxed), counter_);
  if (time <= 0 || counts <= 0) return;
  const double ratio = time / counts;
  if (ratio < fastest || ratio > slowest) return;
  nanoseconds_per_count_ = ratio;
  if (time < shortest) most_counts_ = counts;
}

std::optional<Time> Clock::of_counter(std::uint64_t counter) const {
  if (nanoseconds_per_count_ == 0) return std::nullopt;
  const double counts = difference(counter, counter_);
  if (counts > most_counts_) return std::nullopt;
  return of_clock(sum(nanoseconds_, limited(counts * nanoseconds_per_count_)));
}

Time Clock::of_clock(std::int64_t nanoseconds) const { return sum(nanoseconds, offset_); }

}  // namespace rankmesh::record::detail
