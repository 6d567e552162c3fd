// SPDX-License-Identifier: BSD-3-Clause
// The terminal that the user looks at, if there is one: its width, the progress of long work on it,
// and what happens when the user ends meshinfo by a signal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rankmesh::meshinfo {

// The standard streams of the user.
enum class Stream { output = 1, error = 2 };

// Returns the columns of the terminal that shows the stream; nothing if it goes elsewhere. A
// launcher gives its ranks pipes or terminals of their own. Therefore, in a job, the function uses
// the streams of the launcher, which only processes on the launcher's node can see.
std::optional<std::size_t> terminal_columns(Stream stream);

// Keeps one line on standard error up to date, and ends with a summary. It prints nothing unless
// standard error is shown on a terminal.
class Progress {
 public:
  // @param is_shown  false on ranks that do not print, or if the output itself shows the progress.
  explicit Progress(bool is_shown);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows a text, if the last one has been shown long enough to be read.
  void show(const std::string& text);
  // Shows "[done/total] text, 12 s left".
  void show_step(std::int64_t done, std::int64_t total, const std::string& text);
  // Removes the line and prints the summary.
  void finish(const std::string& summary);
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  std::optional<std::size_t> columns_{};
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_{};
  bool has_line_ = false;
};

// Returns "12 s", "3 min 5 s" or "2 h 10 min".
std::string duration_text(double seconds);
// Returns "12 B", "1.5 KiB", ..., "3.2 GiB".
std::string bytes_text(std::int64_t bytes);

// Removes this file if SIGINT, SIGTERM or SIGHUP ends the process. An empty path: no file. There is
// at most one such file at a time.
void remove_if_interrupted(const std::string& path);

// Clears the line of the terminal that shows progress if a signal ends the process.
void clear_line_if_interrupted(bool clears);

}  // namespace rankmesh::meshinfo
