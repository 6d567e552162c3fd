// SPDX-License-Identifier: BSD-3-Clause
// Index types: comparison, conversion and printing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
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

TEST_CASE("an Index has no arithmetic, and its iterators have") {
  constexpr auto can_add = []<class A, class B>(A a, B b) { return requires { a + b; }; };
  CHECK(!can_add(Rank{1}, 1));
  CHECK(!can_add(1.5, Rank{1}));
  CHECK(!can_add(Rank{1}, Rank{1}));
  static_assert(!std::weakly_incrementable<Rank>);  // nor does std::views::iota(Rank{0}) compile
  std::vector<Rank> ranks{3, 1, 2};
  std::ranges::sort(ranks);
  CHECK(*(ranks.begin() + 2) == 3);
  CHECK(*(1 + ranks.begin()) == 2);
  CHECK(ranks.end() - ranks.begin() == 3);
}

TEST_CASE("an Index prints as its number") {
  std::ostringstream out;
  out << Rank{3} << ' ' << RankInGroup{0} << ' ' << Coordinate{-1};
  CHECK(out.str() == "3 0 -1");
  CHECK(fmt::format("{} {:>4}", Rank{3}, Coordinate{12}) == "3   12");
}
