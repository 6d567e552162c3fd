// SPDX-License-Identifier: BSD-3-Clause
#include "faults/hang_guard.hpp"

#include <chrono>
#include <cstdlib>
#include <utility>

namespace faults {

HangGuard::HangGuard(double seconds, std::function<void()> report)
    : thread_{[this, seconds, report = std::move(report)] {
        std::unique_lock lock{mutex_};
        if (changed_.wait_for(lock, std::chrono::duration<double>{seconds},
                              [this] { return is_over_; }))
          return;
        report();
        // The launcher ends the job with the first process, and the other ranks report too.
        std::this_thread::sleep_for(std::chrono::milliseconds{500});
        std::_Exit(9);
      }} {}

HangGuard::~HangGuard() {
  {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace faults
