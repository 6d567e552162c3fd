// SPDX-License-Identifier: BSD-3-Clause
// A double of NVTX: writes the ranges of this process to the file FAKE_NVTX_LOG.PID, one per line,
// indented by their depth, and `end` where a range ends.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

thread_local int depth = 0;

void write_line(const char* text) {
  static std::FILE* const file = [] {
    const char* const name = std::getenv("FAKE_NVTX_LOG");
    if (name == nullptr) return stderr;
    std::FILE* const opened =
        std::fopen((std::string{name} + "." + std::to_string(::getpid())).c_str(), "w");
    return opened == nullptr ? stderr : opened;
  }();
  std::fprintf(file, "%*s%s\n", 2 * depth, "", text);
  std::fflush(file);
}

}  // namespace

extern "C" {
int nvtxRangePushA(const char* name);
int nvtxRangePop();
}

int nvtxRangePushA(const char* name) {
  write_line(name);
  return depth++;
}

int nvtxRangePop() {
  --depth;
  write_line("end");
  return depth;
}
