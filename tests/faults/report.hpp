// SPDX-License-Identifier: BSD-3-Clause
// The line that each rank prints about a cell, for scripts/fault-matrix.
#pragma once

#include <cstdint>
#include <string>

#include "faults/cell.hpp"

namespace faults {

/// What the line says besides the outcome.
struct Place {
  std::string kind;
  std::int64_t bytes = 0;
  Expected expected = Expected::named;
  int rank = 0, ranks = 0, odd = 0;
};

/// Prints one line: the word CELL and a JSON object.
/// @param seconds  since the cell began
void print_line(const Place& place, const Outcome& outcome, double seconds);

/// Prints one line: the word PROCESS and a JSON object (fault_process.cpp).
/// @param seconds  since the last good call
void print_process(int rank, const Outcome& outcome, double seconds);

}  // namespace faults
