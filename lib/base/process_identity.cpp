// SPDX-License-Identifier: BSD-3-Clause
#include "detail/process_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace rankmesh::detail {

ProcessIdentity ProcessIdentity::own() {
  ProcessIdentity identity{.process = ::getpid()};
  const auto stat = read_process_stat("self");
  struct stat space {};
  // A /proc of another process namespace has other numbers.
  if (stat && stat->process == identity.process && ::stat("/proc/self/ns/pid", &space) == 0) {
    identity.start_time = stat->start_time;
    identity.pid_namespace = space.st_ino;
  }
  return identity;
}

ProcessState state_of(const ProcessIdentity& process, const ProcessIdentity& own) {
  if (own.pid_namespace == 0 || process.pid_namespace != own.pid_namespace)
    return ProcessState::unknown;
  const auto stat = read_process_stat(std::to_string(process.process));
  return stat && stat->start_time == process.start_time ? stat->state : ProcessState::ended;
}

}  // namespace rankmesh::detail
