// SPDX-License-Identifier: BSD-3-Clause
#include "detail/process_stat.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace rankmesh::detail {
namespace {

// Returns whether the number could be read.
template <class Number>
bool parse(std::string_view text, Number& number) {
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{};
}

ProcessState state_named(char letter) {
  switch (letter) {
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

std::optional<ProcessStat> parse_stat(std::string_view text) {
  ProcessStat stat;
  std::int64_t threads = 0;
  char letter = '?';
  // The name of the program stands in parentheses and may contain any character, also blanks.
  const std::size_t name_begin = text.find('(');
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_begin > name_end || !parse(text, stat.process))
    return std::nullopt;
  stat.name = text.substr(name_begin + 1, name_end - name_begin - 1);
  text.remove_prefix(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    text.remove_prefix(begin);
    if (field == 3) letter = text.front();
    if (field == 4 && !parse(text, stat.parent)) return std::nullopt;
    if (field == 20 && !parse(text, threads)) return std::nullopt;
    if (field == 22 && !parse(text, stat.start_time)) return std::nullopt;
    text.remove_prefix(std::min(text.find(' '), text.size()));
  }
  // The main thread alone may have ended, by pthread_exit().
  stat.state = letter == 'Z' && threads > 1 ? ProcessState::unknown : state_named(letter);
  return stat;
}

}  // namespace

std::optional<ProcessStat> read_process_stat(const std::string& process) {
  errno = 0;
  const int file = ::open(fmt::format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t size = ::read(file, text.data(), text.size());
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (size <= 0) return std::nullopt;
  return parse_stat({text.data(), static_cast<std::size_t>(size)});
}

ProcessState state_without_stat() noexcept {
  return errno == ENOENT || errno == ESRCH ? ProcessState::ended : ProcessState::unknown;
}

}  // namespace rankmesh::detail
