// SPDX-License-Identifier: BSD-3-Clause
#include "terminal.hpp"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

namespace meshinfo {

namespace {

constexpr auto least_time = std::chrono::milliseconds{100};  // between two texts

}  // namespace

Progress::Progress(bool is_shown) {
  if (is_shown) columns_ = terminal_columns(Stream::error);
}

Progress::~Progress() { clear(); }

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Progress::show(const std::string& text) {
  if (!columns_ || Clock::now() - shown_ < least_time) return;
  shown_ = Clock::now();
  has_line_ = true;
  clear_line_if_interrupted(true);
  // The last column stays free: some terminals go to the next line when it is used.
  std::fputs(fmt::format("\r\x1b[K{}", text.substr(0, *columns_ - 1)).c_str(), stderr);
  std::fflush(stderr);
}

void Progress::show_step(std::int64_t done, std::int64_t total, const std::string& text) {
  std::string line = fmt::format("[{}/{}] {}", done, total, text);
  if (done > 0 && total > done) {
    const double left = seconds() / static_cast<double>(done) * static_cast<double>(total - done);
    line += fmt::format(", about {} left", duration_text(left));
  }
  show(line);
}

void Progress::finish(const std::string& summary) {
  if (!columns_) return;
  clear();
  std::fputs(fmt::format("{}\n", summary).c_str(), stderr);
}

void Progress::clear() {
  if (!has_line_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  has_line_ = false;
  clear_line_if_interrupted(false);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(units); ++unit) amount /= 1024;
  return amount == std::floor(amount) ? fmt::format("{:.0f} {}", amount, units[unit])
                                      : fmt::format("{:.1f} {}", amount, units[unit]);
}

}  // namespace meshinfo
