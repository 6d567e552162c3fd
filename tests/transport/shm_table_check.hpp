// SPDX-License-Identifier: BSD-3-Clause
// Checks of the table of algorithms in shared memory.
#pragma once

#include <cstdio>
#include <string>

namespace rankmesh_test {

/// Prints what is wrong.
/// @return  false.
inline bool fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return false;
}

/// Returns whether the table of algorithms is as choose() and can() expect it.
bool check_table();

}  // namespace rankmesh_test
