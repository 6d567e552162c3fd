// SPDX-License-Identifier: BSD-3-Clause
// Where the messages of one mesh go.
#pragma once

#include <mutex>
#include <string_view>
#include <utility>

#include "rankmesh/base/log.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// Writes a text to stderr, with one call of the system if it accepts the whole text.
RANKMESH_API void write_to_stderr(std::string_view text);
/// Writes a line to stderr with one call, so that lines of several ranks do not mix.
RANKMESH_API void write_to_stderr(LogLevel level, std::string_view message);

/// Passes messages to the sink of the program, or to stderr as `RANKMESH_LOG` chooses.
///
/// Thread safety: several threads may log at the same time.
class Log {
 public:
  /// @param sink    The sink of the program; may be empty.
  /// @param choice  What is printed if the program has no sink.
  Log(LogSink sink, LogChoice choice)
      : sink_{sink ? std::move(sink) : log_sink_for(choice)},
        has_default_reports_{!sink_ && choice == LogChoice::reports} {}

  /// If the sink throws, the message goes to stderr. The message may come from the watchdog, and an
  /// operation of rankmesh must not fail because of a message.
  void operator()(LogLevel level, std::string_view message) const {
    if (!sink_) return;
    const std::lock_guard lock{mutex_};
    try {
      sink_(level, message);
    } catch (...) {
      write_to_stderr(level, message);
    }
  }
  /// Logs a stall or an abnormal end. The report goes to the sink as a warning, or to stderr if
  /// there is no sink.
  void report(std::string_view message) const {
    if (has_default_reports_)
      write_to_stderr(LogLevel::warning, message);
    else
      (*this)(LogLevel::warning, message);
  }
  /// Returns whether reports go to stderr because neither the program nor RANKMESH_LOG has chosen
  /// anything else. In this case, one rank of a node reports what concerns all ranks of the node.
  [[nodiscard]] bool has_default_reports() const { return has_default_reports_; }
  /// Returns whether reports are written, or passed to a sink.
  [[nodiscard]] bool is_heard() const { return sink_ || has_default_reports_; }

 private:
  LogSink sink_;
  bool has_default_reports_;
  mutable std::mutex mutex_;
};

}  // namespace rankmesh::detail
