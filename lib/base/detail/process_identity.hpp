// SPDX-License-Identifier: BSD-3-Clause
// Which process a rank is, and what the system says about it.
#pragma once

#include <array>
#include <cstdint>

#include "process_stat.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// Identifies a process on its node. A process id is not sufficient: containers number their
/// processes independently of each other, and ids are reused. If /proc belongs to another process
/// namespace, only the random numbers differ.
struct RANKMESH_API ProcessIdentity {
  std::int64_t process = 0;
  std::uint64_t start_time = 0;          ///< Field 22 of /proc/PID/stat.
  std::uint64_t pid_namespace = 0;       ///< The inode of /proc/self/ns/pid; 0 if it is not known.
  std::array<std::uint64_t, 2> token{};  ///< Random numbers of the process.

  /// Returns the identity of the calling process. The system is asked once per process.
  static ProcessIdentity own();
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// Returns the random numbers that identify this machine since it was started; zeros if they are
/// not known. They are the same in all containers of the machine. The host names of containers do
/// not identify the machine.
RANKMESH_API std::array<std::uint64_t, 2> own_boot();

/// Returns the state of a process. The state is known only if the process is in the caller's own
/// process namespace, and its id and its start time match. Costs two system calls or more.
ProcessState state_of(const ProcessIdentity& process, const ProcessIdentity& own);

}  // namespace rankmesh::detail
