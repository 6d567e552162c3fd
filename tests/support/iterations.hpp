// SPDX-License-Identifier: BSD-3-Clause
// How often random tests repeat what they do.
#pragma once

#include <algorithm>
#include <cstdlib>

// Every program with AddressSanitizer has this function.
extern "C" [[gnu::weak]] void __asan_init();

namespace rankmesh_test {

inline bool is_sanitized() { return &__asan_init != nullptr; }

/// Returns how often a random test repeats what it does. It is `usual` in jobs of up to 4 ranks.
/// More ranks share the processors, and sanitizers make everything slow, so there are fewer rounds
/// then; and where the environment chooses the routes, the test has already run without that.
/// Give each size of a job a seed of its own: together the jobs try more than one of them.
/// RANKMESH_TEST_ITERATIONS multiplies all of these numbers in long runs.
/// @param ranks  of the job, or 1
inline int iterations(int usual, int ranks) {
  int part = ranks > 8 ? 4 : ranks > 4 ? 2 : 1;
  if (is_sanitized()) part *= 4;
  if (std::getenv("RANKMESH_ROUTES") != nullptr) part *= 4;
  const char* const factor = std::getenv("RANKMESH_TEST_ITERATIONS");
  return std::max(1, usual * (factor != nullptr ? std::atoi(factor) : 1) / part);
}

}  // namespace rankmesh_test
