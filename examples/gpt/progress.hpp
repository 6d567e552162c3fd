// SPDX-License-Identifier: BSD-3-Clause
// The line that rank 0 prints while the model is trained.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <rankmesh/record/find.hpp>
#include <rankmesh/record/statistics.hpp>

/// Reads the records that rankmesh keeps of the calls of each rank on this machine, and says in
/// which groups the ranks wait.
class Waits {
 public:
  /// Returns the share of the time since the last call that a rank waited in blocking calls of each
  /// family, as in `tp 21 %, pp 9 %`. Reads only; no rank is involved.
  std::string line() {
    std::string text;
    auto now = read();
    for (const auto& family : rankmesh::record::activity_between(before_, now).families)
      if (const int percent = static_cast<int>(100 * family.waited_share() + 0.5); percent > 0)
        text += (text.empty() ? "" : ", ") + family.name + " " + std::to_string(percent) + " %";
    before_ = std::move(now);
    return text;
  }

 private:
  static std::vector<rankmesh::record::Record> read() {
    try {
      return rankmesh::record::read_all(rankmesh::record::sources_of_process(getpid())).records;
    } catch (const rankmesh::Error&) {  // RANKMESH_RECORD=off
      return {};
    }
  }
  std::vector<rankmesh::record::Record> before_ = read();
};

/// Prints a line for some steps.
class Progress {
 public:
  explicit Progress(std::int64_t tokens_of_step) : tokens_of_step_{tokens_of_step} {}

  /// @param of_one_process  the loss of one process; 0 if it is not known.
  void print(std::int64_t step, double loss, double of_one_process, double norm) {
    using Clock = std::chrono::steady_clock;
    const double seconds = std::chrono::duration<double>(Clock::now() - last_).count();
    std::printf("step %4ld   loss %.6f", static_cast<long>(step), loss);
    if (of_one_process != 0) std::printf("   one process %.6f", of_one_process);
    std::printf("   norm %.2f   %6.0f tokens/s", norm,
                static_cast<double>((step - last_step_) * tokens_of_step_) / seconds);
    const std::string waits = waits_.line();
    std::printf("%s%s\n", waits.empty() ? "" : "   waits: ", waits.c_str());
    std::fflush(stdout);
    last_ = Clock::now();
    last_step_ = step;
  }
  /// Says with which step the training begins.
  void begin(std::int64_t step) { last_step_ = step; }

 private:
  std::int64_t tokens_of_step_, last_step_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  Waits waits_;
};
