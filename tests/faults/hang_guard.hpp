// SPDX-License-Identifier: BSD-3-Clause
// Ends the process if a cell hangs, and says in which step.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace faults {

/// Calls `report` and ends the process, if the guard still exists after `seconds`.
class HangGuard {
 public:
  HangGuard(double seconds, std::function<void()> report);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace faults
