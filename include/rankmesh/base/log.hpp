// rankmesh never prints by itself: what it has to say goes to a sink that the user gives or asks
// for.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

enum class LogLevel : std::uint8_t { debug, info, warning };
RANKMESH_API std::string_view to_string(LogLevel level);

/// Called on the thread that called rankmesh, once per message, without a line end. Must not call
/// rankmesh.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// The sink that `RANKMESH_LOG` asks for: `debug`, `info` or `warning` writes that level and above
/// to stderr. Empty (silent) where the variable is unset or says something else.
RANKMESH_API LogSink log_sink_from_environment();

}  // namespace rankmesh
