// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rankmesh {

LogSink log_sink_from_environment() {
  const char* text = std::getenv("RANKMESH_LOG");
  if (text == nullptr) return {};
  for (const LogLevel lowest : {LogLevel::debug, LogLevel::info, LogLevel::warning}) {
    if (to_string(lowest) != text) continue;
    return [lowest](LogLevel level, std::string_view message) {
      if (level < lowest) return;
      // One write per line, so that lines of several ranks do not mix.
      std::string line{"rankmesh: "};
      line.append(to_string(level)).append(": ").append(message).append("\n");
      std::fputs(line.c_str(), stderr);
    };
  }
  return {};
}

}  // namespace rankmesh
