// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/stopwatch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} us", seconds * 1e6);
}

}  // namespace

void Stopwatch::stop() {
  if (!begin_)
    throw UsageError{"a Stopwatch is stopped while no lap runs", "call start() before stop()"};
  end_lap();
}

void Stopwatch::end_lap() noexcept {
  if (!begin_) return;  // the program has stopped it
  seconds_ += std::chrono::duration<double>(Clock::now() - *std::exchange(begin_, {})).count();
  ++laps_;
}

TimeSpread Stopwatch::spread(GroupCoordinator& group) const {
  return rankmesh::spread(group, seconds_);
}

TimeSpread spread(GroupCoordinator& group, double seconds) {
  const std::vector<double> all = group.all_gather(seconds);
  const auto [least, most] =
      std::pair{std::ranges::min_element(all), std::ranges::max_element(all)};
  const auto rank_of = [&](auto place) { return group.ranks().at(place - all.begin()); };
  return {.least = *least,
          .mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()),
          .most = *most,
          .least_at = rank_of(least),
          .most_at = rank_of(most)};
}

std::string to_string(const TimeSpread& spread) {
  return fmt::format("least {} (rank {}), mean {}, most {} (rank {})", time_text(spread.least),
                     spread.least_at.value(), time_text(spread.mean), time_text(spread.most),
                     spread.most_at.value());
}

}  // namespace rankmesh
