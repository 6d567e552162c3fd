// SPDX-License-Identifier: BSD-3-Clause
// What test cases ask about other processes of the node.
#pragma once

#include <fstream>
#include <string>

#include "support/messages.hpp"

namespace rankmesh_test {

/// Waits until a signal has stopped a process; gives up after 20 s. A rank that lets another one
/// continue first waits for this: a SIGCONT that came before the SIGSTOP would be lost.
inline bool is_stopped_soon(int process) {
  return comes_true([&] {
    std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(") ");  // of the program; it may contain anything
    return name_end != std::string::npos && line.compare(name_end, 3, ") T") == 0;
  });
}

}  // namespace rankmesh_test
