// SPDX-License-Identifier: BSD-3-Clause
// What test cases ask about the machine that they run on. Cases that need more are skipped, with
// this as the reason. Where a case is about another machine, it tells the product so: see
// meshinfo/other_cores.c for the number of cores.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace rankmesh_test {

/// Returns the number of cores on which this process may run; `taskset` changes it.
inline int cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  return sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
}

inline bool is_root() { return geteuid() == 0; }

/// Returns whether a program is installed where tests look for programs.
inline bool is_installed(const std::string& program) {
  return std::filesystem::exists("/usr/bin/" + program) ||
         std::filesystem::exists("/bin/" + program);
}

}  // namespace rankmesh_test
