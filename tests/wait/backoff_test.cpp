// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/backoff.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace rankmesh;

TEST_CASE("a backoff spins first, then yields, then sleeps") {
  Backoff backoff{{.spins = 2, .spin_length = 3, .yields = std::chrono::milliseconds{5}}};
  CHECK(backoff.is_spinning());
  backoff.pause();
  CHECK(backoff.is_spinning());
  backoff.pause();
  CHECK(!backoff.is_spinning());
  const auto begin = std::chrono::steady_clock::now();
  backoff.pause();  // yields
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds{150}) backoff.pause();
  for (int i = 0; i < 2; ++i) {
    const auto before = std::chrono::steady_clock::now();
    backoff.pause();
    CHECK(std::chrono::steady_clock::now() - before >= std::chrono::microseconds{150});
  }
  CHECK(!Backoff{}.is_spinning());
}

TEST_CASE("polling ends when the condition holds or the deadline has passed") {
  int polls = 0;
  CHECK(poll_until([&] { return ++polls == 3; }, Deadline{Deadline::Duration{60}}));
  CHECK(polls == 3);
  polls = 0;
  CHECK(!poll_until([&] { return ++polls < 0; }, Deadline{Deadline::Duration{0}}));
  CHECK(polls == 2);  // before and after the deadline was seen to have passed
  polls = 0;
  CHECK(poll_until([&] { return ++polls == 2; }, Deadline{Deadline::Duration{0}}));
}
