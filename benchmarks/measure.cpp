// SPDX-License-Identifier: BSD-3-Clause
// measure RUNS COMMAND [-- COMMAND]: runs the commands alternately and discards their output.
// Prints the median, minimum and maximum of the milliseconds of each command, and its largest
// resident set in MB; for two commands also the ratios of the pairs.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

struct Command {
  std::vector<char*> words;  // ends with a null
  std::vector<double> milliseconds;
  double megabytes = 0;
};

void run(Command& command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = 0;
  rusage usage{};
  const bool runs = posix_spawnp(&child, command.words[0], &actions, nullptr, command.words.data(),
                                 environ) == 0 &&
                    wait4(child, &status, 0, &usage) == child;
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  posix_spawn_file_actions_destroy(&actions);
  if (!runs || status != 0) {
    std::fprintf(stderr, "measure: '%s' failed\n", command.words[0]);
    std::exit(2);
  }
  command.milliseconds.push_back(time.count());
  command.megabytes =
      std::max(command.megabytes, static_cast<double>(usage.ru_maxrss) * 1024 / 1e6);
}

void print(const char* format, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf(format, values[values.size() / 2], values.front(), values.back());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Command> commands(1);
  const int runs = argc > 2 ? std::atoi(argv[1]) : 0;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0)
      commands.emplace_back();
    else
      commands.back().words.push_back(argv[i]);
  }
  if (runs < 1 || commands.size() > 2 || commands.back().words.empty()) return 2;
  for (Command& command : commands) command.words.push_back(nullptr);
  for (int i = 0; i <= runs; ++i)
    for (Command& command : commands) run(command);
  std::vector<double> ratios;
  for (Command& command : commands)
    command.milliseconds.erase(command.milliseconds.begin());  // a warm-up
  for (Command& command : commands) {
    print("%8.1f ms (%.1f .. %.1f)", command.milliseconds);
    std::printf("  %6.1f MB\n", command.megabytes);
  }
  if (commands.size() < 2) return 0;
  for (std::size_t i = 0; i < commands[0].milliseconds.size(); ++i)
    ratios.push_back(commands[0].milliseconds[i] / commands[1].milliseconds[i]);
  print("%8.2f times (%.2f .. %.2f)\n", ratios);
}
