// SPDX-License-Identifier: BSD-3-Clause
// Runs a function as N ranks, each a forked process, so that the tests of the doubles need no MPI.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ranks {

using Settings = std::vector<std::pair<const char*, std::string>>;

// Shared by the ranks of one run.
struct Shared {
  std::atomic<int> arrived;
  std::atomic<int> generation;
  std::atomic<int> flags[64];
  char bytes[64][256];  // small messages between ranks, such as a unique ID
  char failure[64][512];
};

struct Rank {
  int number;
  int size;
  Shared* shared;

  void barrier() const {
    const int generation = shared->generation;
    if (++shared->arrived == size) {
      shared->arrived = 0;
      ++shared->generation;
    }
    while (shared->generation == generation)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  void set(int flag, int value = 1) const { shared->flags[flag] = value; }
  void wait_for(int flag, int value = 1) const {
    while (shared->flags[flag] < value) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  // Gives the bytes of `root` to all; `slot` must be fresh in each use.
  template <class T>
  T share(const T& mine, int root, int slot) const {
    static_assert(sizeof(T) <= 256);
    if (number == root) std::memcpy(shared->bytes[slot], &mine, sizeof(T));
    barrier();
    T out;
    std::memcpy(&out, shared->bytes[slot], sizeof(T));
    return out;
  }
};

// Shorter where the tests run with something broken on purpose, and some of them hang.
inline unsigned time_limit(unsigned usual) {
  const char* given = std::getenv("RANKS_TIME_LIMIT");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : usual;
}

struct Failure : std::runtime_error {
  using runtime_error::runtime_error;
};

// Returns one line for each rank that failed: its first failed REQUIRE_RANK, its exception,
// its signal.
inline std::vector<std::string> run(int size, const Settings& settings,
                                    const std::function<void(Rank)>& body,
                                    unsigned limit_seconds = 60) {
  void* const area =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const shared = new (area) Shared{};
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int r = 0; r < size; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      for (const auto& [name, value] : settings) setenv(name, value.c_str(), 1);
      alarm(time_limit(limit_seconds));  // a rank that hangs is a failure, not a hang of the test
      int status = 0;
      try {
        body(Rank{r, size, shared});
      } catch (const std::exception& error) {
        std::snprintf(shared->failure[r], sizeof shared->failure[r], "%s", error.what());
        status = 1;
      }
      _exit(status);
    }
    children.push_back(child);
  }
  // Reaped as they end, so that a killed rank is really gone for the others.
  std::vector<int> statuses(children.size());
  for (int left = size; left > 0; --left) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    for (std::size_t r = 0; r < children.size(); ++r)
      if (children[r] == ended) statuses[r] = status;
  }
  std::vector<std::string> failures;
  for (int r = 0; r < size; ++r) {
    const int status = statuses[static_cast<std::size_t>(r)];
    std::string line = shared->failure[static_cast<std::size_t>(r)];
    if (line.empty() && WIFSIGNALED(status))
      line = WTERMSIG(status) == SIGALRM ? "hung" : "signal " + std::to_string(WTERMSIG(status));
    if (line.empty() && WIFEXITED(status) && WEXITSTATUS(status) != 0)
      line = "exit status " + std::to_string(WEXITSTATUS(status));
    if (!line.empty()) failures.push_back("rank " + std::to_string(r) + ": " + line);
  }
  munmap(area, sizeof(Shared));
  return failures;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

}  // namespace ranks

#define RANK_TEXT2(x) #x
#define RANK_TEXT(x) RANK_TEXT2(x)
// Inside a rank: ends it with the failed expression.
#define REQUIRE_RANK(...) \
  ((__VA_ARGS__) ? void() \
                 : throw ranks::Failure(__FILE__ ":" RANK_TEXT(__LINE__) ": " #__VA_ARGS__))
// The same for two values of an integral or enumeration type, which it shows.
#define REQUIRE_SAME(a, b)                                                                     \
  do {                                                                                         \
    const auto left_value = static_cast<long long>(a);                                         \
    const auto right_value = static_cast<long long>(b);                                        \
    if (left_value != right_value)                                                             \
      throw ranks::Failure(__FILE__ ":" RANK_TEXT(__LINE__) ": " #a " == " #b ", but " +       \
                           std::to_string(left_value) + " != " + std::to_string(right_value)); \
  } while (false)
// In the test: runs and shows what the ranks said.
#define CHECK_RANKS(size, settings, ...)                                      \
  do {                                                                        \
    const auto said = ranks::joined(ranks::run(size, settings, __VA_ARGS__)); \
    CHECK_MESSAGE(said.empty(), said);                                        \
  } while (false)
