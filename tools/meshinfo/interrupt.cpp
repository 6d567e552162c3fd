// SPDX-License-Identifier: BSD-3-Clause
#include "terminal.hpp"

#include <limits.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

namespace meshinfo {
namespace {

char path_to_remove[PATH_MAX];  // what a signal handler reads must not be in a std::string
std::atomic<bool> has_path{false};
std::atomic<bool> has_line{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Ends the process with the same signal, so that a shell and a launcher see why the process ended.
void end_by(int signal) {
  if (has_path) unlink(path_to_remove);
  constexpr char clear[] = "\r\x1b[K";
  if (has_line) static_cast<void>(!write(STDERR_FILENO, clear, sizeof clear - 1));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void install() {
  static bool is_installed = false;
  if (is_installed) return;
  is_installed = true;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    // A signal that the parent ignores stays ignored, as nohup asks for.
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = end_by;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void remove_if_interrupted(const std::string& path) {
  has_path = false;
  if (path.empty() || path.size() >= sizeof path_to_remove) return;
  std::memcpy(path_to_remove, path.c_str(), path.size() + 1);
  has_path = true;
  install();
}

void clear_line_if_interrupted(bool clears) {
  has_line = clears;
  if (clears) install();
}

}  // namespace meshinfo
