// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/deadline.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "rankmesh/base/error.hpp"

using rankmesh::default_timeout;
using rankmesh::UsageError;

namespace {

// Sets the variable for one test, and restores it.
class Timeout {
 public:
  Timeout() {
    if (const char* text = std::getenv(name)) before_ = text;
  }
  ~Timeout() {
    if (before_)
      setenv(name, before_->c_str(), 1);
    else
      unsetenv(name);
  }
  Timeout(const Timeout&) = delete;
  Timeout& operator=(const Timeout&) = delete;
  static void set(const char* text) { setenv(name, text, 1); }
  static void clear() { unsetenv(name); }

 private:
  static constexpr const char* name = "RANKMESH_TIMEOUT";
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("RANKMESH_TIMEOUT is a positive number of seconds; without it there are 600") {
  const Timeout timeout;
  Timeout::clear();
  CHECK(default_timeout().count() == 600);
  Timeout::set("");
  CHECK(default_timeout().count() == 600);
  Timeout::set("0.5");
  CHECK(default_timeout().count() == 0.5);
  Timeout::set("1e9");  // thirty years: the largest
  CHECK(default_timeout().count() == 1e9);
  for (const char* wrong : {"0", "-1", "1.1e9", "nan", "inf", "5s", "soon", " "}) {
    CAPTURE(wrong);
    Timeout::set(wrong);
    CHECK_THROWS_WITH_AS((void)default_timeout(), doctest::Contains("RANKMESH_TIMEOUT"),
                         UsageError);
  }
}
