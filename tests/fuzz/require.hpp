// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

// Ends the fuzzer with a report if a property of what was parsed does not hold. It replaces assert,
// which NDEBUG would disable.
inline void require(bool holds, const char* property, std::string_view which = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s %.*s\n", property, static_cast<int>(which.size()), which.data());
  std::abort();
}
