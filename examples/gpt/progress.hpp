// SPDX-License-Identifier: BSD-3-Clause
// The line that rank 0 prints while the model is trained.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <rankmesh/base/error.hpp>
#include <rankmesh/record/find.hpp>

/// Reads the records that rankmesh keeps of the calls of each rank on this machine, and says in
/// which groups the ranks wait.
class Waits {
 public:
  Waits() { (void)line(); }
  /// Returns the share of the time since the last call that a rank waited in blocking calls of each
  /// family, as in `tp 21 %, pp 9 %`. Reads only; no rank is involved.
  std::string line() {
    Time elapsed = 1;
    std::map<std::string, Time> waited;  // by family; calls that did not wait have no times
    for (const rankmesh::record::Record& record : read()) {
      Time& before = last_read_[record.mesh_key];
      for (const rankmesh::record::Call& call : record.calls)
        if (!call.is_async && call.begin && call.end && *call.begin > before)
          waited[name_of(record, call)] += *call.end - *call.begin;
      elapsed = std::max(elapsed, record.read_at - before);
      before = record.read_at;
    }
    std::string text;
    for (const auto& [family, time] : waited)
      if (const Time percent = (100 * time + elapsed / 2) / elapsed; percent > 0)
        text += (text.empty() ? "" : ", ") + family + " " + std::to_string(percent) + " %";
    return text;
  }

 private:
  using Time = rankmesh::record::Time;

  static std::string name_of(const rankmesh::record::Record& record,
                             const rankmesh::record::Call& call) {
    const std::size_t family = call.descriptor.name_index();
    if (call.group >= record.groups.size()) return "other groups";
    const std::vector<std::string>& names = record.groups[call.group].names;
    return family < names.size() ? names[family] : names.front();
  }
  static std::vector<rankmesh::record::Record> read() {
    try {
      return rankmesh::record::read_all(rankmesh::record::sources_of_process(getpid())).records;
    } catch (const rankmesh::Error&) {  // RANKMESH_RECORD=off
      return {};
    }
  }
  std::map<std::uint64_t, Time> last_read_;  // by the key of the mesh
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
