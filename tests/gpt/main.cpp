// SPDX-License-Identifier: BSD-3-Clause
// gpt_test gradients|meshes|survive ARGUMENT...: one program, so that the model of examples/gpt is
// compiled once.
#include <cstdio>
#include <map>
#include <string_view>

#include "modes.hpp"

int main(int argc, char** argv) {
  const std::map<std::string_view, int (*)(int, char**)> modes{
      {"gradients", gradients}, {"meshes", meshes}, {"survive", survive}};
  const auto mode = modes.find(argc > 1 ? argv[1] : "");
  if (mode != modes.end()) return mode->second(argc - 1, argv + 1);
  std::fputs("use: gpt_test gradients|meshes|survive ARGUMENT...\n", stderr);
  return 2;
}
