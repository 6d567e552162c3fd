// SPDX-License-Identifier: BSD-3-Clause
// The command line.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "config.hpp"

struct Options {
  std::string layout = "dp=auto";  ///< the first argument
  Config config;
  std::string text = "/usr/share/common-licenses";  ///< a file, or a folder of files
  std::int64_t every = 10;                          ///< steps between two lines and checkpoints
  std::int64_t compare = 0;                         ///< 1: with one process
  std::int64_t survive = 0;                         ///< 1: goes on when ranks are lost
  std::int64_t spares = 0;  ///< 1: the ranks that the layout does not take replace lost ones
  std::string checkpoint;   ///< Training continues from this folder if it exists, and writes it.
  std::string curve;        ///< a picture of the losses
  std::string prompt = "The ";
  std::int64_t generate = 0;  ///< bytes that the model writes at the end
  std::int64_t writers = 1;   ///< the ranks that write them, by tensor parallelism

  static constexpr std::string_view usage =
      "use: gpt [LAYOUT] [--NAME VALUE]...\n"
      "  LAYOUT          sizes of pp, dp, cp, ep and tp, such as pp=2,dp=2,tp=2\n"
      "  the model       --layers --width --heads --context --experts\n"
      "  the training    --steps --batch --microbatch --chunks --zero --rate --text PATH\n"
      "  the output      --every --compare 1 --curve FILE.svg\n"
      "  a checkpoint    --checkpoint FOLDER\n"
      "  lost ranks      --survive 1 --spares 1\n"
      "  a text          --generate BYTES --writers RANKS --prompt TEXT";

  Options() = default;
  Options(int argc, char** argv) {
    const std::map<std::string_view, std::int64_t*> numbers{{"--layers", &config.layers},
                                                            {"--width", &config.width},
                                                            {"--heads", &config.heads},
                                                            {"--context", &config.context},
                                                            {"--experts", &config.experts},
                                                            {"--steps", &config.steps},
                                                            {"--batch", &config.batch},
                                                            {"--microbatch", &config.microbatch},
                                                            {"--chunks", &config.chunks},
                                                            {"--zero", &config.zero},
                                                            {"--every", &every},
                                                            {"--compare", &compare},
                                                            {"--survive", &survive},
                                                            {"--spares", &spares},
                                                            {"--generate", &generate},
                                                            {"--writers", &writers}};
    const std::map<std::string_view, std::string*> texts{{"--text", &text},
                                                         {"--checkpoint", &checkpoint},
                                                         {"--curve", &curve},
                                                         {"--prompt", &prompt}};
    int i = 1;
    if (i < argc && std::string_view{argv[i]}.substr(0, 2) != "--") layout = argv[i++];
    for (; i < argc; i += 2) {
      const std::string_view name = argv[i];
      if (i + 1 == argc) refuse(name, "has no value");
      const std::string value = argv[i + 1];
      if (texts.contains(name))
        *texts.at(name) = value;
      else if (numbers.contains(name))
        *numbers.at(name) = number(name, value);
      else if (name == "--rate")
        config.rate = std::atof(value.c_str());
      else
        refuse(name, "is unknown");
    }
    if (every == 0) every = 1;
    if (!(config.rate > 0)) refuse("--rate", "must be a number above 0");
    if (prompt.empty()) refuse("--prompt", "is empty");
  }

 private:
  [[noreturn]] static void refuse(std::string_view name, const std::string& why) {
    throw rankmesh::UsageError{"the option " + std::string{name} + " " + why, std::string{usage}};
  }
  static std::int64_t number(std::string_view name, const std::string& value) {
    char* end = nullptr;
    const long long n = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || n < 0 || n > (1 << 20))
      refuse(name, "must be a number from 0 to 1048576, but is '" + value + "'");
    return n;
  }
};
