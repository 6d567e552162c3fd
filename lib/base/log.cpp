// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/log.hpp"

#include <unistd.h>

#include <cerrno>
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

namespace detail {

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void write_to_stderr(LogLevel level, std::string_view message) {
  std::string line{"rankmesh: "};
  line.append(to_string(level)).append(": ").append(message).append("\n");
  write_to_stderr(line);
}

}  // namespace detail
}  // namespace rankmesh
