// SPDX-License-Identifier: BSD-3-Clause
#include "terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "launcher.hpp"

namespace meshinfo {
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

}  // namespace meshinfo
