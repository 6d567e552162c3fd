// SPDX-License-Identifier: BSD-3-Clause
#include "detail/process_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <utility>

namespace rankmesh::detail {
namespace {

// Returns the random numbers of this process. A child process after fork() gets others.
std::array<std::uint64_t, 2> own_token() {
  static std::mutex mutex;
  static std::int64_t owner = 0;
  static std::array<std::uint64_t, 2> token{};
  const std::lock_guard lock{mutex};
  if (std::exchange(owner, ::getpid()) == ::getpid()) return token;
  std::random_device source;
  for (std::uint64_t& number : token) number = std::uint64_t{source()} << 32 | source();
  return token;
}

}  // namespace

ProcessIdentity ProcessIdentity::own() {
  ProcessIdentity identity{.process = ::getpid(), .token = own_token()};
  const auto stat = read_process_stat("self");
  struct stat space {};
  // A /proc of another process namespace has other numbers.
  if (stat && stat->process == identity.process && ::stat("/proc/self/ns/pid", &space) == 0) {
    identity.start_time = stat->start_time;
    identity.pid_namespace = space.st_ino;
  }
  return identity;
}

std::array<std::uint64_t, 2> own_boot() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string text;
  file >> text;
  std::erase(text, '-');
  std::array<std::uint64_t, 2> boot{};
  if (text.size() != 32) return boot;
  const char* const begin = text.data();
  const bool is_number = std::from_chars(begin, begin + 16, boot[0], 16).ptr == begin + 16 &&
                         std::from_chars(begin + 16, begin + 32, boot[1], 16).ptr == begin + 32;
  return is_number ? boot : std::array<std::uint64_t, 2>{};
}

ProcessState state_of(const ProcessIdentity& process, const ProcessIdentity& own) {
  if (own.pid_namespace == 0 || process.pid_namespace != own.pid_namespace)
    return ProcessState::unknown;
  const auto stat = read_process_stat(std::to_string(process.process));
  if (!stat) return state_without_stat();
  return stat->start_time == process.start_time ? stat->state : ProcessState::ended;
}

}  // namespace rankmesh::detail
