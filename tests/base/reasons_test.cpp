// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/detail/reasons.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

#include "rankmesh/base/error.hpp"

using namespace rankmesh;

namespace {

using Action = std::function<void()>;

detail::Reasons reasons_of(const Action& action) {
  try {
    action();
  } catch (...) {
    return detail::current_reasons();
  }
  return {};
}

// Throws an exception that the one of `cause` has caused.
template <class Exception>
Action because(const Exception& error, const Action& cause) {
  return [=] {
    try {
      cause();
    } catch (...) {
      std::throw_with_nested(error);
    }
  };
}

const Action disk_full = [] { throw std::runtime_error{"the disk is full"}; };

}  // namespace

TEST_CASE("reasons: each cause once, the outermost first") {
  const std::runtime_error step{"step 7 failed"}, run{"the run failed"};
  CHECK(reasons_of(disk_full).text() == "the disk is full");
  CHECK(reasons_of(because(run, because(step, disk_full))).text() ==
        "the run failed: step 7 failed: the disk is full");
  CHECK(reasons_of(because(std::runtime_error{"step 7: the disk is full"}, disk_full)).text() ==
        "step 7: the disk is full");
  CHECK(reasons_of(because(step, [] { throw 7; })).text() ==
        "step 7 failed: an exception that is not a std::exception");
}

TEST_CASE("reasons: the hints of all errors come after the messages, each once") {
  const Action no_peer = [] { throw UsageError{"no such peer", "use a rank"}; };
  CHECK(reasons_of(no_peer).text() == "no such peer\n  hint: use a rank");
  CHECK(reasons_of(because(std::runtime_error{"step 7 failed"}, no_peer)).text() ==
        "step 7 failed: no such peer\n  hint: use a rank");
  const detail::Reasons reasons =
      reasons_of(because(Error{"the group is broken", "close it"}, no_peer));
  CHECK(reasons.text() == "the group is broken: no such peer\n  hint: close it; use a rank");
  CHECK(reasons_of(no_peer).hint_and("close it") == "use a rank; close it");
  CHECK(reasons_of(no_peer).hint_and("use a rank") == "use a rank");
  CHECK(reasons_of(disk_full).hint_and("close it") == "close it");
}

TEST_CASE("reasons: an exception that could have a cause, but has none") {
  CHECK(reasons_of([] {
          std::throw_with_nested(std::runtime_error{"thrown outside of a handler"});
        }).text() == "thrown outside of a handler");
}
