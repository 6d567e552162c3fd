// SPDX-License-Identifier: BSD-3-Clause
// An ordered set of ranks whose index is written in other factors: against plain arithmetic.
#include "rankmesh/layout/reshape.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "support/checks.hpp"

using rankmesh::GroupFamily;
using rankmesh::Mode;
using rankmesh::Rank;
using rankmesh::RankSet;
using rankmesh::Reshape;

namespace {

using Factors = std::vector<std::pair<std::string, std::int64_t>>;
using FactorNames = std::vector<std::string_view>;
using GroupLists = std::vector<std::vector<std::int64_t>>;

GroupLists groups_in(const GroupFamily& family) {
  GroupLists result;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    result.emplace_back();
    for (const Rank rank : family.group(g)) result.back().push_back(rank.value());
  }
  return result;
}

// Digits of a number, the last factor's varying fastest.
std::vector<std::int64_t> digits_of(std::int64_t number, const Factors& factors) {
  std::vector<std::int64_t> digits(factors.size());
  for (std::size_t f = factors.size(); f-- > 0; number /= factors[f].second)
    digits[f] = number % factors[f].second;
  return digits;
}

// The groups along factor `member`, element by element.
GroupLists enumerated(const RankSet& order, const Factors& factors, std::size_t member) {
  GroupLists result;
  for (std::int64_t i = 0; i < order.size(); ++i) {
    auto digits = digits_of(i, factors);
    if (digits[member] != 0) continue;
    result.emplace_back();
    std::int64_t step = 1;
    for (std::size_t f = member + 1; f < factors.size(); ++f) step *= factors[f].second;
    for (std::int64_t k = 0; k < factors[member].second; ++k)
      result.back().push_back(order.at(i + k * step).value());
  }
  return result;
}

RankSet grid(std::int64_t offset, std::vector<Mode> modes) {
  return RankSet::strided(offset, modes);
}

GroupFamily along(const Reshape& reshape, const Factors& factors, std::size_t member) {
  FactorNames others;
  for (std::size_t f = 0; f < factors.size(); ++f)
    if (f != member) others.emplace_back(factors[f].first);
  return reshape.family("x", FactorNames{factors[member].first}, others);
}

}  // namespace

TEST_CASE("factors that meet the modes are arithmetic, others need a table; both give the groups") {
  struct Row {
    RankSet order;
    Factors factors;
    bool has_table;
  };
  for (const Row& row : {
           Row{grid(0, {{12, 1}}), {{"a", 3}, {"b", 4}}, false},
           Row{grid(0, {{12, 1}}), {{"a", 4}, {"b", 3}}, false},
           Row{grid(8, {{4, 3}, {3, 1}}), {{"a", 2}, {"b", 6}}, false},
           Row{grid(0, {{4, 6}, {6, 1}}), {{"a", 2}, {"b", 4}, {"c", 3}}, false},
           // The index of the set is (4 x 3, transposed): chunks of 2 straddle its rows of 3.
           Row{grid(0, {{3, 1}, {4, 3}}), {{"a", 6}, {"b", 2}}, false},
           Row{grid(0, {{4, 1}, {3, 4}}), {{"a", 6}, {"b", 2}}, true},
           Row{grid(5, {{2, 1}, {3, 2}}), {{"a", 3}, {"b", 2}}, true},
           Row{grid(0, {{6, 1}}), {{"a", 1}, {"b", 6}, {"c", 1}}, false},
       }) {
    CAPTURE(row.order.to_string());
    CAPTURE(row.factors.front().second);
    const Reshape reshape{row.order, row.factors};
    CHECK(reshape.has_table() == row.has_table);
    for (std::size_t member = 0; member < row.factors.size(); ++member) {
      CAPTURE(member);
      CHECK(groups_in(along(reshape, row.factors, member)) ==
            enumerated(row.order, row.factors, member));
    }
  }
}

TEST_CASE("random reshapes are those of an enumeration") {
  std::mt19937 random{31};
  const std::int64_t sizes[] = {1, 2, 3, 4, 6};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> parts;
    std::int64_t product = 1;
    for (int d = 0; d < 3; ++d) product *= parts.emplace_back(sizes[random() % 5]);
    // The set: the parts in some order of strides.
    std::vector<std::size_t> turn{0, 1, 2};
    std::ranges::shuffle(turn, random);
    std::vector<Mode> modes(3);
    std::int64_t stride = 1;
    for (const std::size_t d : turn) {
      modes[d] = {parts[d], stride};
      stride *= parts[d];
    }
    const RankSet order = grid(static_cast<std::int64_t>(random() % 3), modes);
    // The factors: a divisor of the size, and what is left.
    std::int64_t first = 1 + static_cast<std::int64_t>(random() % 12);
    while (product % first != 0) --first;
    const Factors factors{{"a", first}, {"b", product / first}};
    CAPTURE(order.to_string());
    CAPTURE(first);
    const Reshape reshape{order, factors};
    for (std::size_t member = 0; member < 2; ++member)
      CHECK(groups_in(along(reshape, factors, member)) == enumerated(order, factors, member));
  }
}

TEST_CASE("members and listing follow the order that is asked for") {
  const Factors factors{{"a", 2}, {"b", 2}, {"c", 2}};
  const Reshape reshape{grid(0, {{8, 1}}), factors};
  CHECK(groups_in(reshape.family("x", FactorNames{"c", "a"}, FactorNames{"b"})) ==
        GroupLists{{0, 4, 1, 5}, {2, 6, 3, 7}});
  CHECK(groups_in(reshape.family("x", FactorNames{"b"}, FactorNames{"c", "a"})) ==
        GroupLists{{0, 2}, {4, 6}, {1, 3}, {5, 7}});
  CHECK(reshape.family("mine", FactorNames{"a"}, FactorNames{"b", "c"}).name() == "mine");
}

TEST_CASE("factors that do not fit, unknown factors and tables that are too large are refused") {
  const RankSet twelve = grid(0, {{12, 1}});
  for (const Factors& factors : {Factors{{"a", 5}}, Factors{{"a", 3}, {"b", 3}},
                                 Factors{{"a", 0}, {"b", 12}}, Factors{{"a", -3}, {"b", -4}}})
    CHECK_THROWS_WITH_AS((Reshape{twelve, factors}), doctest::Contains("must be 12"),
                         rankmesh::UsageError);
  CHECK_THROWS_AS((Reshape{RankSet{}, Factors{{"a", 1}}}), rankmesh::UsageError);
  const Reshape reshape{twelve, Factors{{"a", 3}, {"b", 4}}};
  CHECK_THROWS_WITH_AS((void)reshape.family("x", FactorNames{"z"}, FactorNames{"a", "b"}),
                       doctest::Contains("'z'"), rankmesh::UsageError);
  CHECK_THROWS_AS((void)reshape.family("x", FactorNames{"a"}, FactorNames{}), rankmesh::UsageError);

  // Any size goes by arithmetic; a table has a limit.
  const std::int64_t million = std::int64_t{1} << 20;
  const RankSet transposed = grid(0, {{24, 1}, {million, 24}});
  CHECK_FALSE(Reshape{transposed, Factors{{"a", 24}, {"b", million}}}.has_table());
  CHECK_THROWS_WITH_AS((Reshape{transposed, Factors{{"a", million}, {"b", 24}}}),
                       doctest::Contains("table"), rankmesh::SpecError);
}
