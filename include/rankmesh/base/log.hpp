// SPDX-License-Identifier: BSD-3-Clause
// Log messages. rankmesh prints nothing unless the user passes a sink or asks for a sink.
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

/// A function that receives one message, without a line end. The function runs on the thread that
/// called rankmesh, and it must not call rankmesh.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Returns the sink that the environment variable `RANKMESH_LOG` asks for: if the value is `debug`,
/// `info` or `warning`, the sink writes messages of that level and above to stderr. Returns an
/// empty sink if the variable is unset or has another value.
RANKMESH_API LogSink log_sink_from_environment();

}  // namespace rankmesh
