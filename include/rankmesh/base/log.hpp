// SPDX-License-Identifier: BSD-3-Clause
// Log messages. Without a sink of the program, rankmesh prints only reports of stalls and of ranks
// that end abnormally.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The importance of a message, in rising order.
enum class LogLevel : std::uint8_t { debug, info, warning };
/// Returns "debug", "info" or "warning".
RANKMESH_API std::string_view to_string(LogLevel level);

/// A function that receives one message, without a line end. It must not call rankmesh. It runs on
/// the thread that called rankmesh; reports of stalls may also come from the watchdog thread.
/// rankmesh calls the sink of a mesh from one thread at a time. If the sink throws, rankmesh
/// ignores the exception and writes the message to stderr.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// What rankmesh prints to stderr if the program has set no sink.
enum class LogChoice : std::uint8_t {
  debug,    ///< All messages.
  info,     ///< Messages of the level `info` and above.
  warning,  ///< Warnings.
  reports,  ///< Only reports of stalls and of ranks that end abnormally. This is the default.
  off,      ///< Nothing.
};
/// Returns the name of the choice, as `RANKMESH_LOG` spells it.
RANKMESH_API std::string_view to_string(LogChoice choice);

/// Returns the choice of the environment variable `RANKMESH_LOG`: `off`, `debug`, `info` or
/// `warning`, and LogChoice::reports if the variable is not set or empty.
/// @throws UsageError if the variable has another value.
RANKMESH_API LogChoice log_choice_from_environment();

/// Returns the sink for a choice: it writes messages of that level and above to stderr. The sink is
/// empty for `reports` and `off`.
RANKMESH_API LogSink log_sink_for(LogChoice choice);

}  // namespace rankmesh
