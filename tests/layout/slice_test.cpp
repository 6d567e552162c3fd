// SPDX-License-Identifier: BSD-3-Clause
// Parts of a size that need not be divisible.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/slice.hpp"

using namespace rankmesh;

TEST_CASE("slices cover all elements once, and differ by at most one element") {
  for (std::int64_t members = 1; members <= 9; ++members)
    for (std::int64_t n = 0; n <= 40; ++n) {
      std::int64_t end = 0;
      for (std::int64_t k = 0; k < members; ++k) {
        const Slice slice = Slice::of(n, members, k);
        CHECK(slice.begin() == end);
        end = slice.end();
        CHECK(slice.size() >= n / members);
        CHECK(slice.size() <= n / members + 1);
        CHECK(slice.size() <= Slice::of(n, members, 0).size());
        CHECK(slice.contains(slice.begin()) == (slice.size() > 0));
        CHECK(!slice.contains(slice.end()));
      }
      CHECK(end == n);
    }
  CHECK(Slice::of(INT64_MAX, 3, 2).end() == INT64_MAX);
  CHECK_THROWS_AS(Slice::of(-1, 2, 0), UsageError);
  CHECK_THROWS_AS(Slice::of(1, 2, 2), UsageError);
  CHECK_THROWS_AS(Slice::of(1, 0, 0), UsageError);
}
