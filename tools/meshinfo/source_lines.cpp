// SPDX-License-Identifier: BSD-3-Clause
#include "source_lines.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "record/detail/image.hpp"

extern char** environ;

namespace rankmesh::meshinfo {
namespace {

constexpr std::size_t most_lines = 3;

using record::CallSite;
using record::Record;

// A function that contains an address, and the line. A function that was inlined there comes first.
struct Function {
  std::string symbol, line;
};
using Address = std::pair<std::string, std::uint64_t>;  // the file, and the address in it
using Functions = std::map<Address, std::vector<Function>>;

// Returns what a program prints; an empty text if it cannot be started.
std::string output_of(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool has_started =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t n = 0; has_started && (n = ::read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (has_started) ::waitpid(child, nullptr, 0);
  return text;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// addr2line prints for each address a line `0xADDRESS`, and two lines for each function.
void add_functions(const std::string& path, const std::set<std::uint64_t>& offsets,
                   Functions& functions) {
  std::vector<std::string> words{"addr2line", "-a", "-i", "-f", "-e", path};
  for (const std::uint64_t offset : offsets) words.push_back(fmt::format("{:x}", offset));
  const std::string output = output_of(std::move(words));
  std::string_view rest = output;
  auto offset = offsets.begin();
  std::vector<Function>* found = nullptr;
  while (!rest.empty()) {
    const std::string_view symbol = next_line(rest);
    if (symbol.starts_with("0x") && offset != offsets.end()) {
      found = &functions[{path, *offset++}];
      continue;
    }
    std::string_view line = next_line(rest);
    line = line.substr(0, line.find(" (discriminator"));
    if (found != nullptr) found->push_back({std::string{symbol}, std::string{line}});
  }
}

// Whether a function is rankmesh's or one of the standard library's, which the program does not
// write, by its mangled name or the place of its header.
bool is_of_library(const Function& function) {
  std::string_view name = function.symbol;
  while (name.starts_with("_Z") || name.starts_with("Z"))
    name.remove_prefix(name[0] == 'Z' ? 1 : 2);
  if (name.starts_with("N")) name.remove_prefix(1);
  if (name.starts_with("K")) name.remove_prefix(1);
  return name.starts_with("8rankmesh") || name.starts_with("St") ||
         function.line.find("include/rankmesh/") != std::string::npos ||
         function.line.find("include/c++/") != std::string::npos;
}

std::string name_of(const std::string& path) {
  return std::filesystem::path{path}.filename().string();
}

// Returns the name of a function without its parameters.
std::string name_of_symbol(const std::string& symbol) {
  char* const whole = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr);
  std::string name = whole == nullptr ? symbol : whole;
  std::free(whole);
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = name.find(unnamed)) != std::string::npos;)
    name.erase(at, unnamed.size());
  const std::size_t end = name.rfind(')');
  int depth = 0;
  for (std::size_t i = end; end != std::string::npos && i < name.size(); --i) {
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (depth == 0) return i == 0 ? name : name.substr(0, i);
  }
  return name;
}

std::string text_of(const Function& function, const std::string& place) {
  const bool is_known = !function.line.starts_with("??") && !function.line.ends_with(":?") &&
                        !function.line.ends_with(":0");
  if (is_known) return name_of(function.line);
  return function.symbol == "??" ? place
                                 : fmt::format("{} ({})", name_of_symbol(function.symbol), place);
}

// Returns the functions of the program that have called each other, the innermost first.
std::vector<std::string> lines_of(const Record& record, const CallSite& site,
                                  const Functions& functions) {
  std::vector<std::string> lines;
  for (const auto& [file, offset] : site) {
    const std::string& path = record.files[file];
    const std::string place = fmt::format("{}+0x{:x}", name_of(path), offset);
    const auto found = functions.find({path, offset});
    if (found == functions.end()) {
      lines.push_back(place);
      continue;
    }
    for (const Function& function : found->second)
      if (!is_of_library(function)) lines.push_back(text_of(function, place));
    if (!found->second.empty() && found->second.back().symbol == "main") break;
  }
  return lines;
}

const CallSite* last_site(const Record& record) {
  if (record.calls.empty() || record.calls.back().site == 0) return nullptr;
  return &record.call_sites[record.calls.back().site - 1];
}

}  // namespace

void find_source_lines(Records& records) {
  std::map<std::string, std::set<std::uint64_t>> addresses;
  for (const Record& record : records)
    if (const CallSite* site = last_site(record))
      for (const auto& [file, offset] : *site) addresses[record.files[file]].insert(offset);
  Functions functions;
  for (const auto& [path, offsets] : addresses) add_functions(path, offsets, functions);
  if (functions.empty() && !addresses.empty())
    report_remark("source lines need addr2line (binutils) and the program's file on this machine");
  for (Record& record : records) {
    const CallSite* const site = last_site(record);
    if (site == nullptr) continue;
    for (const std::string& line : lines_of(record, *site, functions)) {
      if (record.last_lines.size() == most_lines) break;
      record.last_lines.push_back(record::detail::printable(line));
    }
  }
}

}  // namespace rankmesh::meshinfo
