// SPDX-License-Identifier: BSD-3-Clause
// Log messages. rankmesh prints nothing unless the program passes a sink or the environment
// variable RANKMESH_LOG requests one.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The importance of a message. The levels are in ascending order.
enum class LogLevel : std::uint8_t { debug, info, warning };
/// Returns "debug", "info" or "warning".
RANKMESH_API std::string_view to_string(LogLevel level);

/// A function that receives one message. The message does not end with a newline. The function runs
/// on the thread that called rankmesh, and it must not call rankmesh.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Returns the sink that the environment variable `RANKMESH_LOG` requests. If the value is `debug`,
/// `info` or `warning`, the sink writes all messages of at least this level to stderr. If the
/// variable is unset or has any other value, the result is an empty sink.
RANKMESH_API LogSink log_sink_from_environment();

}  // namespace rankmesh
