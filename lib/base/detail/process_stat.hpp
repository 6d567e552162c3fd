// SPDX-License-Identifier: BSD-3-Clause
// What /proc says about a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rankmesh::detail {

/// What the system says about a process.
enum class ProcessState : std::uint8_t {
  unknown,   ///< It is in another process namespace, /proc cannot be read, or its main thread has
             ///< ended and other threads run.
  running,   ///< It runs, or is ready to run.
  sleeping,  ///< It sleeps, or waits for a device.
  stopped,   ///< A signal or a debugger has stopped it.
  ended,     ///< It has ended.
};

/// The fields of /proc/PID/stat that rankmesh needs.
struct ProcessStat {
  std::int64_t process = 0;
  std::int64_t parent = 0;
  std::string name;  ///< Of the program, at most 15 characters.
  ProcessState state = ProcessState::unknown;
  std::uint64_t start_time = 0;  ///< In clock ticks since the machine was started.
};

/// Returns nothing if the process does not exist or cannot be read; see state_without_stat().
/// @param process  its id, or `self`.
std::optional<ProcessStat> read_process_stat(const std::string& process);
/// Returns the state of a process for which read_process_stat() has just returned nothing: ended,
/// or unknown if it could not be read. For example, this process may have no file descriptor left.
ProcessState state_without_stat() noexcept;

}  // namespace rankmesh::detail
