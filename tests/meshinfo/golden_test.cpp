// SPDX-License-Identifier: BSD-3-Clause
// Tests the command line as its users see it: golden/*.txt holds commands, their output and their
// exit status.
//
//   $ meshinfo show tp=2        a /bin/sh command; its output (stdout, then stderr) follows
//   ...
//   {...}                       in an output line: any text (versions of libraries)
//   [exit 0]                    ends the output; lines before the next `$ ` are a comment
//
// RANKMESH_UPDATE_GOLDEN=1 rewrites the files with the present output; read the difference before
// you commit it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "process.hpp"
#include "support/checks.hpp"

namespace {

namespace fs = std::filesystem;
using rankmesh_test::lines_of;
using rankmesh_test::Result;

std::string read(const fs::path& path) {
  std::ifstream stream{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

// Whether the line matches the pattern, in which "{...}" matches any text.
bool matches(const std::string& line, const std::string& pattern) {
  const auto gap = pattern.find("{...}");
  if (gap == std::string::npos) return line == pattern;
  return line.size() >= pattern.size() - 5 && line.starts_with(pattern.substr(0, gap)) &&
         line.ends_with(pattern.substr(gap + 5));
}

// An error is always one line and a hint line on stderr, without other output. So is a remark,
// beside the output.
void check_manners(const Result& result) {
  CHECK_LACKS(result.out, "\x1b");
  if (result.status != 2 && result.err.empty()) return;
  if (result.status == 2) CHECK(result.out == "");
  const auto lines = lines_of(result.err);
  CHECK(lines.size() == 2);
  if (lines.size() != 2) return;
  CHECK(lines[0].starts_with("meshinfo: "));
  CHECK(lines[1].starts_with("  hint: "));
  CHECK(lines[1].size() > 8);
  CHECK(std::ranges::all_of(result.err, [](unsigned char c) { return c == '\n' || c >= ' '; }));
}

// Runs every command of a file and returns the file as it should be.
std::string replay(const fs::path& path) {
  const rankmesh_test::Scratch scratch;
  const auto lines = lines_of(read(path));
  std::vector<std::string> now;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    now.push_back(lines[i]);
    if (!lines[i].starts_with("$ ")) continue;
    std::vector<std::string> expected{lines[i]};
    while (++i < lines.size() && !lines[i].starts_with("[exit ") && !lines[i].starts_with("$ "))
      expected.push_back(lines[i]);
    if (i < lines.size() && lines[i].starts_with("[exit "))
      expected.push_back(lines[i]);
    else
      --i;  // a command without its output yet

    const std::string command = expected.front().substr(2);
    CAPTURE(command);
    const Result result = rankmesh_test::shell(scratch, command);
    check_manners(result);
    std::vector<std::string> found{expected.front()};
    for (const auto& line : lines_of(result.out + result.err)) found.push_back(line);
    found.push_back("[exit " + std::to_string(result.status) + "]");
    for (std::size_t line = 1; line < std::min(found.size(), expected.size()); ++line)
      if (matches(found[line], expected[line])) found[line] = expected[line];
    if (std::getenv("RANKMESH_UPDATE_GOLDEN") == nullptr) CHECK(joined(found) == joined(expected));
    now.insert(now.end(), found.begin() + 1, found.end());
  }
  return joined(now);
}

}  // namespace

TEST_CASE("meshinfo prints the golden files") {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator{GOLDEN_DIR})
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::ranges::sort(files);
  REQUIRE(files.size() >= 8);
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    const std::string now = replay(file);
    if (std::getenv("RANKMESH_UPDATE_GOLDEN") != nullptr && now != read(file)) {
      std::ofstream{file, std::ios::binary} << now;
      MESSAGE("rewritten");
    }
  }
}
