// SPDX-License-Identifier: BSD-3-Clause
// Runs a target on its kept corpus, without libFuzzer. The corpus has one input per line, with \n,
// \\ and \xNN as escapes.
#include <cstdio>
#include <fstream>
#include <string>

#include "check.hpp"

namespace {

std::string unescaped(const std::string& line) {
  std::string input;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      input += line[i];
    } else if (line[++i] == 'n') {
      input += '\n';
    } else if (line[i] == 'x') {
      input += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      input += line[i];
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file{argv[i]};
    for (std::string line; std::getline(file, line); ++inputs) {
      const std::string input = unescaped(line);
      std::printf("%s:%d\n", argv[i], inputs + 1);  // the last one printed is the one that failed
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
  }
  std::printf("%d inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
