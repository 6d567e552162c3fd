// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/log.hpp"

#include <cstdio>
#include <string>

#include "base/detail/log.hpp"

namespace rankmesh {

LogSink log_sink_for(LogChoice choice) {
  if (choice > LogChoice::warning) return {};
  return [choice](LogLevel level, std::string_view message) {
    if (static_cast<int>(level) >= static_cast<int>(choice))
      detail::write_to_stderr(level, message);
  };
}

LogSink log_sink_from_environment() { return log_sink_for(log_choice_from_environment()); }

namespace detail {

void write_to_stderr(LogLevel level, std::string_view message) {
  std::string line{"rankmesh: "};
  line.append(to_string(level)).append(": ").append(message).append("\n");
  std::fputs(line.c_str(), stderr);
}

}  // namespace detail
}  // namespace rankmesh
