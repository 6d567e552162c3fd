// SPDX-License-Identifier: BSD-3-Clause
#include "detail/process_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <mutex>
#include <string>

#include "detail/random_bits.hpp"

namespace rankmesh::detail {
namespace {

ProcessIdentity new_identity() {
  ProcessIdentity identity{.process = ::getpid()};
  for (std::uint64_t& number : identity.token) number = random_bits();
  const auto stat = read_process_stat("self");
  struct stat space {};
  // A /proc of another process namespace has other numbers.
  if (stat && stat->process == identity.process && ::stat("/proc/self/ns/pid", &space) == 0) {
    identity.start_time = stat->start_time;
    identity.pid_namespace = space.st_ino;
  }
  return identity;
}

std::array<std::uint64_t, 2> read_boot() {
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

}  // namespace

ProcessIdentity ProcessIdentity::own() {
  static std::mutex mutex;
  static ProcessIdentity identity;
  const std::lock_guard lock{mutex};
  // A child process after fork() gets another one.
  if (identity.process != ::getpid()) identity = new_identity();
  return identity;
}

std::array<std::uint64_t, 2> own_boot() {
  static const std::array<std::uint64_t, 2> boot = read_boot();
  return boot;
}

ProcessState state_of(const ProcessIdentity& process, const ProcessIdentity& own) {
  if (own.pid_namespace == 0 || process.pid_namespace != own.pid_namespace)
    return ProcessState::unknown;
  const auto stat = read_process_stat(std::to_string(process.process));
  if (!stat) return state_without_stat();
  return stat->start_time == process.start_time ? stat->state : ProcessState::ended;
}

}  // namespace rankmesh::detail
