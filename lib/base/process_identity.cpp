// SPDX-License-Identifier: BSD-3-Clause
#include "detail/process_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace rankmesh::detail {
namespace {

// The fields of /proc/PID/stat that are needed.
struct Stat {
  std::int64_t process = 0;
  char state = '?';
  std::uint64_t start_time = 0;
};

// Returns whether the number could be read.
template <class Number>
bool parse(std::string_view text, Number& number) {
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{};
}

std::optional<Stat> parse_stat(std::string_view text) {
  Stat stat;
  // The name of the program stands in parentheses and may contain any character, also blanks.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || !parse(text, stat.process)) return std::nullopt;
  text.remove_prefix(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    text.remove_prefix(begin);
    if (field == 3) stat.state = text.front();
    if (field == 22 && !parse(text, stat.start_time)) return std::nullopt;
    text.remove_prefix(std::min(text.find(' '), text.size()));
  }
  return stat;
}

// Returns nothing if the file does not exist or cannot be read.
std::optional<Stat> read_stat(const std::string& process) {
  const int file = ::open(fmt::format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  return size <= 0 ? std::nullopt : parse_stat({text.data(), static_cast<std::size_t>(size)});
}

}  // namespace

ProcessIdentity ProcessIdentity::own() {
  ProcessIdentity identity{.process = ::getpid()};
  const auto stat = read_stat("self");
  struct stat space {};
  // A /proc of another process namespace has other numbers.
  if (stat && stat->process == identity.process && ::stat("/proc/self/ns/pid", &space) == 0) {
    identity.start_time = stat->start_time;
    identity.pid_namespace = space.st_ino;
  }
  return identity;
}

ProcessState state_of(const ProcessIdentity& process, const ProcessIdentity& own) {
  if (own.pid_namespace == 0 || process.pid_namespace != own.pid_namespace)
    return ProcessState::unknown;
  const auto stat = read_stat(std::to_string(process.process));
  if (!stat || stat->start_time != process.start_time) return ProcessState::ended;
  switch (stat->state) {
    case 'Z':
    case 'X':
    case 'x':
      return ProcessState::ended;
    case 'T':
    case 't':
      return ProcessState::stopped;
    case 'R':
      return ProcessState::running;
    default:
      return ProcessState::sleeping;
  }
}

}  // namespace rankmesh::detail
