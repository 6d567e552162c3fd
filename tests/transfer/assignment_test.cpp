// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/assignment.hpp"

using namespace rankmesh;

namespace {

using Matrix = std::vector<std::vector<std::int64_t>>;  // a row per coordinate

std::vector<HeldBytes> entries(const Matrix& held) {
  std::vector<HeldBytes> result;
  for (std::size_t c = 0; c < held.size(); ++c)
    for (std::size_t r = 0; r < held[c].size(); ++r)
      result.push_back({static_cast<std::int64_t>(c), static_cast<std::int64_t>(r), held[c][r]});
  return result;
}

std::int64_t best_by_permutations(const Matrix& held) {
  std::vector<std::size_t> ranks(held.front().size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  std::int64_t best = 0;
  do {
    std::int64_t kept = 0;
    for (std::size_t c = 0; c < held.size(); ++c) kept += held[c][ranks[c]];
    best = std::max(best, kept);
  } while (std::ranges::next_permutation(ranks).found);
  return best;
}

// The ranks are different, and the bytes are those of the assignment.
void check_valid(const Assignment& found, std::int64_t ranks, const std::vector<HeldBytes>& held) {
  std::vector<bool> is_taken(static_cast<std::size_t>(ranks));
  for (const std::int64_t rank : found.rank_of) {
    REQUIRE(rank >= 0);
    REQUIRE(rank < ranks);
    CHECK_FALSE(is_taken[static_cast<std::size_t>(rank)]);
    is_taken[static_cast<std::size_t>(rank)] = true;
  }
  std::int64_t kept = 0;
  for (const HeldBytes& entry : held)
    if (found.rank_of[static_cast<std::size_t>(entry.coordinate)] == entry.rank)
      kept += entry.bytes;
  CHECK(found.kept == kept);
  CHECK(found.bound >= found.kept);
}

}  // namespace

TEST_CASE("assign_ranks keeps as many bytes as the best permutation") {
  std::mt19937_64 random{21};
  for (int round = 0; round < 400; ++round) {
    const std::size_t ranks = 1 + random() % 7;
    const std::size_t coordinates = 1 + random() % ranks;
    const std::uint64_t most = round % 3 == 0 ? 3 : 1000;  // many equal values, or few
    Matrix held(coordinates, std::vector<std::int64_t>(ranks));
    for (auto& row : held)
      for (auto& value : row) value = static_cast<std::int64_t>(random() % most);
    const auto list = entries(held);
    const Assignment found = assign_ranks(static_cast<std::int64_t>(coordinates),
                                          static_cast<std::int64_t>(ranks), list);
    check_valid(found, static_cast<std::int64_t>(ranks), list);
    CHECK(found.kept == best_by_permutations(held));
    CHECK(found.gap() == 0);
    CHECK(found.how == "exact");
  }
}

TEST_CASE("a rotation moves nothing after relabelling") {
  for (const std::int64_t ranks : {8, 1000, 3000}) {
    std::vector<HeldBytes> held;
    for (std::int64_t c = 0; c < ranks; ++c) held.push_back({c, (c + 1) % ranks, 1 << 20});
    const Assignment found = assign_ranks(ranks, ranks, held);
    check_valid(found, ranks, held);
    CHECK(found.kept == ranks << 20);
    CHECK(found.gap() == 0);
  }
}

TEST_CASE("large worlds of equal coordinates and equal ranks are exact") {
  // 40 parts, each on 100 ranks and needed by 100 coordinates, and one part that is needed less
  // often than it is held.
  std::vector<HeldBytes> held;
  for (std::int64_t c = 0; c < 4000; ++c)
    for (std::int64_t r = c % 40; r < 4000; r += 40) held.push_back({c, r, 100 + c % 40});
  const Assignment found = assign_ranks(4000, 4000, held);
  CHECK(found.how == "exact");
  check_valid(found, 4000, held);
  CHECK(found.kept == 4000 * 100 + 100 * (39 * 40 / 2));
}

TEST_CASE("coordinates with ranks of their own do not change the assignment of the others") {
  // Each coordinate finds something on a few ranks. A second problem has 1,025 additional
  // coordinates that fit on ranks of their own.
  std::mt19937_64 random{7};
  for (int round = 0; round < 5; ++round) {
    constexpr std::int64_t members = 60, extra = 1025;
    std::vector<HeldBytes> held;
    for (std::int64_t c = 0; c < members; ++c)
      for (int n = 0; n < 5; ++n)
        held.push_back({c, static_cast<std::int64_t>(random() % members),
                        static_cast<std::int64_t>(random() % 1000)});
    const Assignment exact = assign_ranks(members, members, held);
    CHECK(exact.how == "exact");
    std::int64_t additional = 0;
    for (std::int64_t c = 0; c < extra; ++c) {
      held.push_back({members + c, members + c, 2000 + c});
      additional += 2000 + c;
    }
    const Assignment found = assign_ranks(members + extra, members + extra, held);
    CHECK(found.how == "exact");
    check_valid(found, members + extra, held);
    CHECK(found.kept == exact.kept + additional);
    CHECK(found.gap() == 0);
  }
}

TEST_CASE("an assignment of many coordinates that find something everywhere is optimal") {
  std::mt19937_64 random{11};
  for (const std::uint64_t most : {2U, 50U, 1'000'000U}) {
    Matrix held(200, std::vector<std::int64_t>(200));
    for (auto& row : held)
      for (auto& value : row) value = static_cast<std::int64_t>(random() % most);
    const auto list = entries(held);
    const Assignment found = assign_ranks(200, 200, list);
    check_valid(found, 200, list);
    CHECK(found.gap() == 0);
  }
}

TEST_CASE("the bound of an assignment holds for the largest numbers of bytes") {
  constexpr std::int64_t large = std::int64_t{1} << 59;
  const std::vector<HeldBytes> held{{0, 0, large}, {0, 1, large - 1}, {1, 0, large}, {2, 2, 1}};
  const Assignment found = assign_ranks(3, 3, held);
  check_valid(found, 3, held);
  CHECK(found.kept >= large + large - 3);
  CHECK(found.bound >= large + large);
  CHECK((found.how == "exact") == (found.gap() == 0));
}

TEST_CASE("coordinates that need nothing that is there get the ranks that are left") {
  const std::vector<HeldBytes> held{{0, 2, 10}};
  const Assignment found = assign_ranks(3, 4, held);
  check_valid(found, 4, held);
  CHECK(found.rank_of.front() == 2);
  CHECK(assign_ranks(0, 4, {}).rank_of.empty());
}

TEST_CASE("assign_ranks refuses numbers that are out of range") {
  const std::vector<HeldBytes> outside{{0, 4, 1}}, negative{{0, 0, -1}},
      too_many{{0, 0, std::int64_t{1} << 62}, {0, 0, 1}};
  CHECK_THROWS_AS((void)assign_ranks(5, 4, {}), UsageError);
  CHECK_THROWS_AS((void)assign_ranks(1, 4, outside), UsageError);
  CHECK_THROWS_AS((void)assign_ranks(1, 4, negative), UsageError);
  CHECK_THROWS_AS((void)assign_ranks(1, 4, too_many), UsageError);
}
