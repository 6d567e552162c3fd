// SPDX-License-Identifier: BSD-3-Clause
// The samples of descriptions of machines (samples/SOURCES.md).
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "machine/read_machine.hpp"

namespace rankmesh_test {

inline std::string sample(const std::string& name) {
  std::ifstream file{std::string{RANKMESH_MACHINE_SAMPLES} + "/" + name, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Reads samples together.
template <class... Names>
rankmesh::Machine machine_of(const rankmesh::MachineNumbers& numbers, Names... names) {
  rankmesh::MachineReader reader;
  (reader.read(sample(names), names), ...);
  return reader.machine(numbers);
}

}  // namespace rankmesh_test
