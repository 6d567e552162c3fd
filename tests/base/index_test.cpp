// SPDX-License-Identifier: BSD-3-Clause
// Index types: comparison, conversion and printing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstddef>
#include <sstream>
#include <type_traits>
#include <vector>

#include "rankmesh/base/index.hpp"

using namespace rankmesh;

TEST_CASE("an Index is compared with numbers, and converts to them by name") {
  const Rank three{3};
  CHECK(three == 3);
  CHECK(3U == three);
  CHECK(three < 4L);
  CHECK(three != Rank{2});
  CHECK(three >= std::size_t{3});
  const std::vector<int> values{5, 6, 7, 8};
  CHECK(values[three.to_size()] == 8);
  CHECK(static_cast<int>(three) == 3);
  const int as_int = three.to_int();
  CHECK(as_int == 3);
  CHECK(unsigned{three} == 3);
  static_assert(!std::is_convertible_v<Rank, int> && !std::is_convertible_v<Rank, RankInGroup>);
  static_assert(!std::is_constructible_v<RankInGroup, Rank>);
  static_assert(!std::is_constructible_v<bool, Rank>);
}

TEST_CASE("an Index prints as its number") {
  std::ostringstream out;
  out << Rank{3} << ' ' << RankInGroup{0} << ' ' << Coordinate{-1};
  CHECK(out.str() == "3 0 -1");
  CHECK(fmt::format("{} {:>4}", Rank{3}, Coordinate{12}) == "3   12");
}
