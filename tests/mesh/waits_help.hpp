// SPDX-License-Identifier: BSD-3-Clause
// Waits that end by their deadline.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "rankmesh/rankmesh.hpp"

namespace rankmesh_test {

using Clock = std::chrono::steady_clock;

constexpr double busy_machine = 3;  // how much later than due a wait may end, in seconds

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>{Clock::now() - begin}.count();
}

// With a deadline both transports poll.
inline rankmesh::MeshOptions polling(const char* transport, double deadline) {
  rankmesh::MeshOptions options;
  options.timeout = rankmesh::Deadline::Duration{60};
  options.deadline = rankmesh::Deadline::Duration{deadline};
  options.routes = std::string{"*.*:host="} + transport;
  return options;
}

inline std::string name_of(int rank) {
  return "rank " + std::to_string(rank) + " (tp=" + std::to_string(rank) + ")";
}

// Calls tp.barrier, which cannot end, and returns the error.
template <class Expected = rankmesh::TimeoutError>
Expected barrier_in_vain(rankmesh::Mesh& mesh) {
  try {
    mesh["tp"].barrier();
  } catch (const Expected& error) {
    return error;
  }
  FAIL("the barrier ended");
  return Expected{"", "", {}};
}

}  // namespace rankmesh_test
