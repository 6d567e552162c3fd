// SPDX-License-Identifier: BSD-3-Clause
// The time limit of the steps of doctor.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "doctor.hpp"
#include "meshinfo.hpp"

namespace meshinfo {

StepWatch::StepWatch(double seconds, std::string who) : seconds_{seconds}, who_{std::move(who)} {
  if (seconds_ > 0) thread_ = std::thread{[this] { run(); }};
}

StepWatch::~StepWatch() {
  {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StepWatch::begin(std::string name) {
  {
    const std::lock_guard lock{mutex_};
    step_ = std::move(name);
    ++number_;
  }
  changed_.notify_all();
}

// Only one thread may call MPI, so this thread ends the process without MPI_Abort. The launcher
// then ends the job.
void StepWatch::run() {
  std::unique_lock lock{mutex_};
  while (!is_over_) {
    const std::int64_t number = number_;
    const bool has_moved = changed_.wait_for(lock, std::chrono::duration<double>{seconds_},
                                             [&] { return is_over_ || number_ != number; });
    if (has_moved || number == 0) continue;
    std::fputs(
        fmt::format("meshinfo: {} has waited {:g} s in {}\n  hint: check the network to that "
                    "host (ping, firewall), and which network MPI uses; --timeout N waits "
                    "longer\n",
                    who_, seconds_, step_)
            .c_str(),
        stderr);
    std::_Exit(check_failed);
  }
}

}  // namespace meshinfo
