// SPDX-License-Identifier: BSD-3-Clause
// The terminal, the progress on it, and the end by a signal.
#include "terminal.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "rankmesh/base/launcher.hpp"

namespace rankmesh::meshinfo {
namespace {

constexpr std::size_t usual_columns = 80;
constexpr std::size_t least_columns = 40;  // narrower texts cannot be read

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  std::string text;
  std::getline(file, text);
  return text;
}

bool is_launcher(const std::string& name) {
  constexpr std::string_view names[] = {
      "mpirun",  "mpiexec",      "mpiexec.hydra",   "mpirun.openmpi", "orterun",
      "prterun", "mpirun.mpich", "mpiexec.openmpi", "mpiexec.mpich",  "srun"};
  return std::ranges::find(names, name) != std::end(names);
}

// Returns the number behind "pid (name) S " in a line of /proc/PID/stat: the parent.
pid_t parent_of(pid_t process) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
  const auto end = stat.rfind(") ");
  pid_t parent = 0;
  if (end != std::string::npos && end + 4 < stat.size())
    std::from_chars(stat.data() + end + 4, stat.data() + stat.size(), parent);
  return parent;
}

// Returns the launcher that is an ancestor of this process; 0 if it runs on another node.
pid_t launcher_process() {
  pid_t process = getppid();
  for (int level = 0; level < 8 && process > 1; ++level, process = parent_of(process))
    if (is_launcher(text_of(fmt::format("/proc/{}/comm", process)))) return process;
  return 0;
}

std::optional<std::size_t> columns_of(int file) {
  if (isatty(file) != 1) return std::nullopt;
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<std::size_t>(size.ws_col, least_columns);
  const char* text = std::getenv("COLUMNS");  // a terminal that does not know its size
  const int columns = text == nullptr ? 0 : std::atoi(text);
  if (columns <= 0) return usual_columns;
  return std::max(static_cast<std::size_t>(columns), least_columns);
}

std::optional<std::size_t> columns_of_launcher(Stream stream) {
  const pid_t launcher = launcher_process();
  if (launcher == 0) return std::nullopt;
  const std::string path = fmt::format("/proc/{}/fd/{}", launcher, static_cast<int>(stream));
  char target[64];
  const ssize_t size = readlink(path.c_str(), target, sizeof target);
  // A pipe is not opened: it would wait for its other end.
  if (size <= 5 || !std::string_view{target, static_cast<std::size_t>(size)}.starts_with("/dev/"))
    return std::nullopt;
  const int file = open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const auto columns = columns_of(file);
  close(file);
  return columns;
}

}  // namespace

std::optional<std::size_t> terminal_columns(Stream stream) {
  return is_launched() ? columns_of_launcher(stream) : columns_of(static_cast<int>(stream));
}

namespace {

char path_to_remove[PATH_MAX];  // what a signal handler reads must not be in a std::string
std::atomic<bool> has_path{false};
std::atomic<bool> has_line{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Ends the process with the same signal, so that a shell and a launcher see why the process ended.
void end_by(int signal) {
  if (has_path) unlink(path_to_remove);
  constexpr char clear[] = "\r\x1b[K";
  if (has_line) static_cast<void>(!write(STDERR_FILENO, clear, sizeof clear - 1));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void install() {
  static bool is_installed = false;
  if (is_installed) return;
  is_installed = true;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    // A signal that the parent ignores stays ignored, as nohup asks for.
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = end_by;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void remove_if_interrupted(const std::string& path) {
  has_path = false;
  if (path.empty() || path.size() >= sizeof path_to_remove) return;
  std::memcpy(path_to_remove, path.c_str(), path.size() + 1);
  has_path = true;
  install();
}

void clear_line_if_interrupted(bool clears) {
  has_line = clears;
  if (clears) install();
}

namespace {

constexpr auto least_time = std::chrono::milliseconds{100};  // between two texts

}  // namespace

Progress::Progress(bool is_shown) {
  if (is_shown) columns_ = terminal_columns(Stream::error);
}

Progress::~Progress() { clear(); }

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Progress::show(const std::string& text) {
  if (!columns_ || Clock::now() - shown_ < least_time) return;
  shown_ = Clock::now();
  has_line_ = true;
  clear_line_if_interrupted(true);
  // The last column stays free: some terminals go to the next line when it is used.
  std::fputs(fmt::format("\r\x1b[K{}", text.substr(0, *columns_ - 1)).c_str(), stderr);
  std::fflush(stderr);
}

void Progress::show_step(std::int64_t done, std::int64_t total, const std::string& text) {
  std::string line = fmt::format("[{}/{}] {}", done, total, text);
  if (done > 0 && total > done) {
    const double left = seconds() / static_cast<double>(done) * static_cast<double>(total - done);
    line += fmt::format(", about {} left", duration_text(left));
  }
  show(line);
}

void Progress::finish(const std::string& summary) {
  if (!columns_) return;
  clear();
  std::fputs(fmt::format("{}\n", summary).c_str(), stderr);
}

void Progress::clear() {
  if (!has_line_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  has_line_ = false;
  clear_line_if_interrupted(false);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(units); ++unit) amount /= 1024;
  return amount == std::floor(amount) ? fmt::format("{:.0f} {}", amount, units[unit])
                                      : fmt::format("{:.1f} {}", amount, units[unit]);
}

}  // namespace rankmesh::meshinfo
