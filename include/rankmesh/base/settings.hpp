// SPDX-License-Identifier: BSD-3-Clause
// The environment variables of rankmesh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/log.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// Returns the value of an environment variable. It is empty if the variable is not set, or is set
/// to an empty text.
RANKMESH_API std::optional<std::string> environment_variable(const char* name);
/// Returns the value of an environment variable that holds seconds.
/// @throws UsageError if the value is not a positive number up to 1e9.
RANKMESH_API std::optional<Deadline::Duration> seconds_from_environment(const char* name);
/// Returns the value of an environment variable that is 0 or 1.
/// @throws UsageError if the variable has another value.
RANKMESH_API std::optional<bool> flag_from_environment(const char* name);

/// Whether ranks of one node read each other's ordinary memory.
enum class SingleCopy : std::uint8_t {
  automatic,  ///< If the system allows it.
  off,        ///< Never.
  allow,      ///< Like `automatic`, and this process asks the system to allow it (PR_SET_PTRACER).
};

/// The values of rankmesh's environment variables. A value is empty if its variable is not set, or
/// is set to an empty text. An option in code has precedence over the variable.
struct RANKMESH_API Settings {
  std::optional<Deadline::Duration> timeout{};   ///< RANKMESH_TIMEOUT, in seconds.
  std::optional<Deadline::Duration> deadline{};  ///< RANKMESH_DEADLINE, in seconds.
  /// RANKMESH_DEVICE_DEADLINE, in seconds.
  std::optional<Deadline::Duration> device_deadline{};
  std::optional<Deadline::Duration> stall{};  ///< RANKMESH_STALL, in seconds.
  std::optional<bool> watchdog{};             ///< RANKMESH_WATCHDOG: 0 or 1.
  std::optional<bool> check{};                ///< RANKMESH_CHECK: 0 or 1.
  std::string record{};                       ///< RANKMESH_RECORD: off, or a folder; or empty.
  std::optional<bool> record_times{};         ///< RANKMESH_RECORD_TIMES: 0 or 1.
  std::optional<bool> record_lines{};         ///< RANKMESH_RECORD_LINES: 0 or 1.
  std::optional<bool> nvtx{};                 ///< RANKMESH_NVTX: 0 or 1.
  SingleCopy single_copy{};                   ///< RANKMESH_SINGLE_COPY: auto, off or allow.
  LogChoice log{};                            ///< RANKMESH_LOG: off, debug, info or warning.

  /// Reads all variables. Local.
  /// @throws UsageError if variables have values that are not valid. The message lists all of these
  /// variables. This function does not check the texts of RANKMESH and RANKMESH_ROUTES; their
  /// parsers check them.
  static Settings from_environment();
};

}  // namespace rankmesh
