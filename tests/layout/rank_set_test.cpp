// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "support/checks.hpp"

using rankmesh::Mode;
using rankmesh::Rank;
using rankmesh::RankSet;

namespace {

RankSet strided(std::int64_t start, std::vector<Mode> modes) {
  return RankSet::strided(start, modes);
}

RankSet list(std::vector<std::int64_t> values) {
  const std::vector<Rank> ranks{values.begin(), values.end()};
  return RankSet::of(ranks);
}

}  // namespace

TEST_CASE("the text form") {
  const std::vector<std::pair<std::vector<std::int64_t>, std::string>> table{
      {{}, ""},
      {{5}, "5"},
      {{4, 5}, "4-5"},
      {{0, 8}, "0,8"},
      {{0, 1, 2, 3}, "0-3"},
      {{0, 8, 16}, "0-16:8"},
      {{0, 2, 3, 4}, "0,2-4"},
      {{0, 1, 4, 5}, "0-1,4-5"},
      {{3, 2, 1}, "3,2,1"},
      {{0, 4, 1, 5}, "0,4,1,5"},
      {{0, 1, 2, 10, 20, 30}, "0-2,10-30:10"},
      {{7, 3, 5, 0}, "7,3,5,0"},
  };
  for (const auto& [ranks, text] : table) CHECK(list(ranks).to_string() == text);
  CHECK(strided(0, {{16, 8}}).to_string() == "0-120:8");
  CHECK(strided(1, {{2, 64}, {3, 8}}).to_string() == "1-17:8,65-81:8");
  CHECK(strided(8, {{4, -2}}).to_string() == "8,6,4,2");
  CHECK(RankSet::range(0, std::int64_t{1} << 40).to_string() == "0-1099511627775");
  CHECK(strided(0, {{1000, 100}, {3, 10}}).to_string(20) == "0-20:10,100-120:10,...");
}

TEST_CASE("the text form is greedy across blocks, in constant memory and up to a limit") {
  CHECK(strided(0, {{2, 130}, {2, 100}, {3, 10}}).to_string() == "0-20:10,100-150:10,230-250:10");
  std::string text;
  RankSet::range(0, 9).write([&](std::string_view item) { return text += item, true; });
  CHECK(text == "0-8");
  CHECK(strided(0, {{1000, 3}}).to_string(3) == "...");
}

TEST_CASE("indices outside a set are refused") {
  const RankSet set = strided(8, {{3, -4}});
  CHECK(set.highest() == Rank{8});
  CHECK(set.back() == Rank{0});
  CHECK(RankSet{}.highest() == Rank{-1});
  CHECK(list({3, 9, 4}).highest() == Rank{9});
  CHECK_THROWS_AS((void)set.at(3), rankmesh::UsageError);
  CHECK_THROWS_AS((void)set.at(-1), rankmesh::UsageError);
  CHECK_THROWS_AS((void)RankSet{}.front(), rankmesh::UsageError);
}

TEST_CASE("the shortest modes do not depend on how a set was written") {
  CHECK(strided(0, {{2, 4}, {4, 1}}).modes() == std::vector<Mode>{{8, 1}});
  CHECK(strided(0, {{2, 4}, {4, 1}}) == RankSet::range(0, 8));
  CHECK(strided(3, {{1, 7}, {5, 2}, {1, 1}}).modes() == std::vector<Mode>{{5, 2}});
  CHECK(strided(0, {{4, 1}, {2, 4}}) != RankSet::range(0, 8));  // the same ranks in another order
  CHECK(list({0, 4, 1, 5}) == strided(0, {{2, 1}, {2, 4}}));
}

TEST_CASE("modes that do not describe a set are refused") {
  CHECK_THROWS_AS(strided(0, {{2, 1}, {2, 1}}), rankmesh::UsageError);  // two indices, one rank
  CHECK_THROWS_AS(strided(0, {{3, 2}, {2, 3}}), rankmesh::UsageError);  // digits overlap
  CHECK_THROWS_AS(strided(0, {{0, 1}}), rankmesh::UsageError);
  CHECK_THROWS_AS(strided(2, {{4, -1}}), rankmesh::UsageError);  // below rank 0
  CHECK_THROWS_AS(strided(0, {{4, 0}}), rankmesh::UsageError);
  CHECK_THROWS_AS(strided(0, {{std::int64_t{1} << 40, std::int64_t{1} << 40}}),
                  rankmesh::UsageError);
  CHECK_THROWS_AS(list({1, 2, 1}), rankmesh::SpecError);
  CHECK_THROWS_AS(list({-1, 2}), rankmesh::SpecError);
}

TEST_CASE("irregular lists keep their order through a table") {
  const RankSet set = list({9, 0, 4, 17});
  CHECK(set.size() == 4);
  CHECK(set[2] == Rank{4});
  CHECK(set.index_of(17)->value() == 3);
  CHECK(!set.contains(1));
  CHECK(!set.contains(-3));
  CHECK(set == list({9, 0, 4, 17}));
  CHECK(set != list({9, 0, 17, 4}));
  CHECK(list({0, 3, 2, 5}).to_string() == "0,3,2,5");  // regular steps whose digits overlap
}

TEST_CASE(
    "random sets: index_of inverts at, membership equals enumeration, modes are found again") {
  std::mt19937 random{20261121};
  for (int round = 0; round < 2000; ++round) {
    // Random sizes in random order, with gaps and some negative strides.
    std::vector<Mode> modes;
    std::int64_t reach = 1;
    std::int64_t lowest = 0;
    const int count = static_cast<int>(random() % 5);
    for (int m = 0; m < count; ++m) {
      const std::int64_t size = 1 + random() % 5;
      const std::int64_t stride = reach + static_cast<std::int64_t>(random() % 3);
      reach = stride * size;
      const bool falls = random() % 4 == 0;
      modes.push_back({size, falls ? -stride : stride});
      if (falls) lowest += (size - 1) * stride;
    }
    std::ranges::shuffle(modes, random);
    const std::int64_t start = lowest + static_cast<std::int64_t>(random() % 10);
    const RankSet set = strided(start, modes);

    std::vector<Rank> ranks;
    std::int64_t i = 0;
    for (const Rank rank : set) {
      CHECK(set.index_of(rank) == rankmesh::RankInGroup{i++});
      ranks.push_back(rank);
    }
    CHECK(i == set.size());
    const std::set<Rank> members{ranks.begin(), ranks.end()};
    CHECK(static_cast<std::int64_t>(members.size()) == set.size());
    for (std::int64_t rank = -2; rank < start + reach + 3; ++rank)
      CHECK(set.contains(rank) == members.contains(rank));
    const RankSet again = RankSet::of(ranks);
    CHECK(again == set);
    CHECK(again.modes() == set.modes());
    CHECK(again.to_string() == set.to_string());
    CHECK(RankSet::parse(set.to_string()) == set);

    std::ranges::shuffle(modes, random);
    const RankSet shuffled = strided(start, modes);
    const auto shuffled_ranks = shuffled.to_vector();
    CHECK(set.has_same_ranks(shuffled) ==
          (members == std::set<Rank>{shuffled_ranks.begin(), shuffled_ranks.end()}));
  }
}

TEST_CASE("ranks are read as they are printed, and blanks are free") {
  CHECK(RankSet::parse("0-3, 8 ,16-120:8").to_string() == "0-3,8-120:8");
  CHECK(RankSet::parse(" 5 ").to_string() == "5");
  CHECK(RankSet::parse("3,1,0,2").to_string() == "3,1,0,2");
  CHECK(RankSet::parse("4-6,1,2", 5).size() == 5);  // as many as are allowed
  CHECK(RankSet::parse("0-9223372036854775806").size() ==
        INT64_MAX);  // a single item is arithmetic
  struct Bad {
    const char* text;
    std::size_t position;
    const char* reason;
  };
  for (const Bad& bad :
       {Bad{"", 0, "expected a rank"}, Bad{"0-", 2, "expected a rank"},
        Bad{"-1", 0, "expected a rank"}, Bad{"0 1", 2, "expected ','"},
        Bad{"7-4", 2, "the range from 7 to 4 falls"},
        Bad{"0-8:3", 2, "steps of 3 from 0 do not reach 8"}, Bad{"0-4:0", 2, "steps of 0"},
        Bad{"0,9223372036854775807", 2, "overflows"}, Bad{"1,0-99999999999", 15, "more than"}}) {
    CAPTURE(bad.text);
    try {
      (void)RankSet::parse(bad.text);
      FAIL_CHECK("accepted");
    } catch (const rankmesh::SpecError& error) {
      CHECK(error.position() == bad.position);
      CHECK_CONTAINS(error.message(), bad.reason);
    }
  }
  CHECK_THROWS_WITH_AS((void)RankSet::parse("1,2,1"), doctest::Contains("duplicate rank 1"),
                       rankmesh::SpecError);
}

TEST_CASE(
    "the indices of an interval in any order, also of one that is as large as 63 bits allow") {
  std::mt19937_64 random;  // the same seed in every run
  for (int bits = 2; bits <= 62; ++bits)
    for (int turn = 0; turn < 20; ++turn) {
      // Three modes with all strides, in any order and direction.
      const int a = static_cast<int>(random() % static_cast<unsigned>(bits));
      const int b = a + static_cast<int>(random() % static_cast<unsigned>(bits - a));
      const auto power = [](int exponent) { return std::int64_t{1} << exponent; };
      std::vector<Mode> modes{{power(a), 1}, {power(b - a), power(a)}, {power(bits - b), power(b)}};
      std::ranges::shuffle(modes, random);
      std::int64_t start = 0;
      for (Mode& mode : modes)
        if (random() % 2 == 0) {
          start += (mode.size - 1) * mode.stride;
          mode.stride = -mode.stride;
        }
      const RankSet set = RankSet::strided(start, modes);
      CAPTURE(bits);
      for (int i = 0; i < 5; ++i) {
        const auto index =
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(power(bits)));
        CHECK(set.find(set.at(index)) == index);
      }
      CHECK(set.find(Rank{-1}) == -1);
      CHECK(set.find(Rank{power(bits)}) == -1);
    }
}

TEST_CASE("tables of dense and of scattered ranks") {
  for (const std::vector<std::int64_t>& ranks : {std::vector<std::int64_t>{},
                                                 {0},
                                                 {7},
                                                 {3, 1, 0, 2},
                                                 {5, 2, 0},
                                                 {1, 1000000, 5},
                                                 {0, INT64_MAX}}) {
    const auto table = rankmesh::RankTable::make(ranks);
    std::string text;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      CHECK(table->position_of(ranks[i]) == static_cast<std::int64_t>(i));
      text += std::to_string(ranks[i]) + ",";
    }
    CHECK(table->highest() == (ranks.empty() ? -1 : *std::ranges::max_element(ranks)));
    for (const std::int64_t rank : {-1, 4, 6, 999999}) {
      const bool is_there = std::ranges::find(ranks, rank) != ranks.end();
      CHECK(table->position_of(rank).has_value() == is_there);
    }
    CHECK(table->hash() == rankmesh::hash_bytes(text));
  }
  std::vector<std::int64_t> many(5000);
  std::string text;
  for (std::size_t i = 0; i < many.size(); ++i)
    text += std::to_string(many[i] = 4999 - static_cast<int>(i)) + ",";
  CHECK(rankmesh::RankTable::make(many)->hash() == rankmesh::hash_bytes(text));
  CHECK_THROWS_AS((void)rankmesh::RankTable::make({0, 1, 0}), rankmesh::SpecError);
  CHECK_THROWS_AS((void)rankmesh::RankTable::make({900, 1, 900}), rankmesh::SpecError);
}

TEST_CASE("a divider divides like the processor") {
  std::mt19937_64 random;  // the same seed in every run
  for (int i = 0; i < 200000; ++i) {
    const auto of_any_width = [&] {
      return static_cast<std::int64_t>(random() >> (1 + random() % 63));
    };
    const std::int64_t divisor = std::max<std::int64_t>(1, of_any_width());
    const std::int64_t dividend = of_any_width();
    REQUIRE(rankmesh::Divider{divisor}.quotient(dividend) == dividend / divisor);
  }
  for (const std::int64_t divisor :
       {std::int64_t{1}, std::int64_t{2}, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX})
    for (const std::int64_t dividend :
         {std::int64_t{0}, divisor - 1, divisor, INT64_MAX - 1, INT64_MAX})
      REQUIRE(rankmesh::Divider{divisor}.quotient(dividend) == dividend / divisor);
}

TEST_CASE("for_each visits the same ranks as the iterator") {
  for (const RankSet& set : {RankSet{}, RankSet::range(5, 1), RankSet::range(3, 7),
                             RankSet::strided(100, std::vector<Mode>{{3, -16}, {2, 1}, {4, 2}}),
                             RankSet::of(std::vector<Rank>{4, 1, 7, 2}), RankSet::repeated(3, 2)}) {
    std::vector<Rank> seen;
    set.for_each([&](Rank rank) { seen.push_back(rank); });
    CHECK(std::equal(seen.begin(), seen.end(), set.begin(), set.end()));
  }
}

TEST_CASE("the same positions in another order") {
  const RankSet set = strided(4, {{3, 16}, {2, 1}, {4, 2}});
  CHECK(set.has_same_ranks(strided(4, {{4, 2}, {2, 1}, {3, 16}})));
  CHECK(set.has_same_ranks(strided(4 + 32 + 7, {{3, -16}, {8, -1}})));
  CHECK_FALSE(set.has_same_ranks(strided(5, {{3, 16}, {8, 1}})));
  CHECK_FALSE(set.has_same_ranks(strided(4, {{3, 16}, {4, 1}, {2, 8}})));
  CHECK(RankSet{}.has_same_ranks(RankSet{}));
}
