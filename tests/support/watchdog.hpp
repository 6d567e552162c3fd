// SPDX-License-Identifier: BSD-3-Clause
// Ends a test that would otherwise hang, with a message that says why.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace rankmesh_test {

/// Ends this process, and so the whole job, if the watchdog still exists after `seconds`. For calls
/// that block for ever if the code under test is wrong.
class Watchdog {
 public:
  Watchdog(double seconds, std::string reason)
      : thread_{[this, seconds, reason = std::move(reason)] {
          std::unique_lock lock{mutex_};
          if (changed_.wait_for(lock, std::chrono::duration<double>{seconds},
                                [this] { return is_over_; }))
            return;
          std::fprintf(stderr, "watchdog after %g s: %s\n", seconds, reason.c_str());
          std::_Exit(1);
        }} {}
  ~Watchdog() {
    {
      const std::lock_guard lock{mutex_};
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace rankmesh_test
