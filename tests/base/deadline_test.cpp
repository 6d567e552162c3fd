// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/deadline.hpp"

#include <doctest/doctest.h>

#include "rankmesh/base/error.hpp"
#include "support/scoped_variable.hpp"

using rankmesh::default_timeout;
using rankmesh::UsageError;
using rankmesh_test::ScopedVariable;

TEST_CASE("RANKMESH_TIMEOUT is a positive number of seconds; without it there are 600") {
  const ScopedVariable timeout{"RANKMESH_TIMEOUT"};
  timeout.clear();
  CHECK(default_timeout().count() == 600);
  timeout.set("");
  CHECK(default_timeout().count() == 600);
  timeout.set("0.5");
  CHECK(default_timeout().count() == 0.5);
  timeout.set("1e9");  // thirty years: the largest
  CHECK(default_timeout().count() == 1e9);
  for (const char* wrong : {"0", "-1", "1.1e9", "nan", "inf", "5s", "soon", " "}) {
    CAPTURE(wrong);
    timeout.set(wrong);
    CHECK_THROWS_WITH_AS((void)default_timeout(), doctest::Contains("RANKMESH_TIMEOUT"),
                         UsageError);
  }
}
