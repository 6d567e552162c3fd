// SPDX-License-Identifier: BSD-3-Clause
#include "faults/report.hpp"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

namespace faults {
namespace {

// Longer texts would not reach a pipe in one piece, and ranks share the pipe of the launcher.
constexpr std::size_t longest_text = 2000;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text.substr(0, longest_text)) {
    if (c == '"' || c == '\\')
      result += std::string{'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) >= ' ')
      result += c;
  }
  return result + '"';
}

std::string quoted(const std::vector<std::string>& words) {
  std::string result = "[";
  for (const auto& word : words) result += (result.size() > 1 ? "," : "") + quoted(word);
  return result + "]";
}

void print(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void print_line(const Place& place, const Outcome& outcome, double seconds) {
  const std::string line = fmt::format(
      "CELL "
      "{{\"kind\":{},\"bytes\":{},\"expected\":\"{}\",\"rank\":{},\"ranks\":{},\"odd_rank\":{},"
      "\"process\":{},\"outcome\":\"{}\",\"at\":{},\"seconds\":{:.3f},\"wrong\":{},\"odd\":{},"
      "\"good\":{},\"text\":{}}}\n",
      quoted(place.kind), place.bytes, to_string(place.expected), place.rank, place.ranks,
      place.odd, getpid(), outcome.name, quoted(outcome.at), seconds, quoted(outcome.wrong),
      quoted(outcome.odd), quoted(outcome.good), quoted(outcome.text));
  print(line);
}

void print_process(int rank, const Outcome& outcome, double seconds) {
  print(fmt::format("PROCESS {{\"rank\":{},\"outcome\":\"{}\",\"seconds\":{:.3f},\"text\":{}}}\n",
                    rank, outcome.name, seconds, quoted(outcome.text)));
}

}  // namespace faults
