// SPDX-License-Identifier: BSD-3-Clause
// The iterator over strided runs: any ranges of elements, of blocks and of arrays with gaps.
#include "transfer/detail/strided_runs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "support/iterations.hpp"

using namespace rankmesh;
using rankmesh::detail::ArrayGaps;
using rankmesh::detail::ArrayView;
using rankmesh::detail::StridedRuns;
using rankmesh::detail::Strip;

namespace {

using Places = std::vector<std::pair<std::int64_t, std::int64_t>>;  // source and target

void add(Places& places, const Strip& strip) {
  for (std::int64_t run = 0; run < strip.count; ++run)
    for (std::int64_t i = 0; i < strip.length; ++i)
      places.emplace_back(strip.source + run * strip.source_step + i,
                          strip.target + run * strip.target_step + i);
}

Places all_of(const StridedRuns& runs, std::int64_t count) {
  Places places;
  runs.for_each(0, count, [&](const Strip& strip) { add(places, strip); });
  return places;
}

// Blocks, some of which have outer loops in common, and some of which have no elements.
std::vector<TransferBlock> random_blocks(std::mt19937& random) {
  const auto below = [&](int end) { return static_cast<std::int64_t>(random()) % end; };
  std::vector<TransferBlock> blocks;
  std::vector<TransferLoop> common;
  for (std::int64_t b = 1 + below(6); b > 0; --b) {
    if (below(3) == 0) common.clear();
    if (common.empty())
      for (std::int64_t loops = below(3); loops > 0; --loops)
        common.push_back({1 + below(40), 1000 * below(9), 1000 * below(9)});
    TransferBlock block{100'000 * b, 200'000 * b, below(8) == 0 ? 0 : 1 + below(5), common};
    for (std::int64_t loops = below(3); loops > 0; --loops)
      block.loops.push_back({below(12) == 0 ? 0 : 1 + below(5), 7 + below(50), 5 + below(50)});
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

TEST_CASE("every range of elements of blocks is found, wherever it begins and ends") {
  std::mt19937 random{11};
  for (int i = 0; i < rankmesh_test::iterations(300, 1); ++i) {
    const std::vector<TransferBlock> blocks = random_blocks(random);
    const StridedRuns runs{blocks};
    Places expected;
    for (const TransferBlock& block : blocks)
      block.for_each([&](std::int64_t source, std::int64_t target, std::int64_t length) {
        add(expected, {source, target, length});
      });
    const auto count = static_cast<std::int64_t>(expected.size());
    if (count == 0) continue;
    const Places whole = all_of(runs, count);
    Places sorted = whole;
    std::ranges::sort(sorted);
    std::ranges::sort(expected);
    REQUIRE(sorted == expected);
    // In pieces of random sizes.
    Places pieces;
    for (std::int64_t first = 0; first < count;) {
      const std::int64_t n = std::min(count - first, 1 + static_cast<std::int64_t>(random() % 50));
      runs.for_each(first, n, [&](const Strip& strip) { add(pieces, strip); });
      first += n;
      REQUIRE(std::ssize(pieces) == first);
    }
    REQUIRE(pieces == whole);
    // Only the first strip.
    int strips = 0;
    runs.for_each(count / 2, count - count / 2, [&](const Strip& strip) {
      ++strips;
      CHECK(strip.source == whole[static_cast<std::size_t>(count / 2)].first);
      return false;
    });
    REQUIRE(strips == 1);
  }
}

TEST_CASE("blocks with the same outer loops take turns, in a few turns of these loops at a time") {
  // Two columns of an array of 20 rows.
  const std::vector<TransferBlock> blocks{{0, 0, 1, {{20, 10, 2}}}, {5, 1, 1, {{20, 10, 2}}}};
  const Places places = all_of(StridedRuns{blocks}, 40);
  CHECK(places[0] == std::pair<std::int64_t, std::int64_t>{0, 0});
  CHECK(places[15] == std::pair<std::int64_t, std::int64_t>{150, 30});
  CHECK(places[16] == std::pair<std::int64_t, std::int64_t>{5, 1});
  CHECK(places[32] == std::pair<std::int64_t, std::int64_t>{160, 32});
  CHECK(places[36] == std::pair<std::int64_t, std::int64_t>{165, 33});
}

TEST_CASE("the elements of an array with gaps are found by their offsets in a dense array") {
  std::vector<std::byte> memory(4096);
  ArrayGaps gaps;
  const std::vector<std::int64_t> shape{3, 4, 5}, strides{100, 10, 1}, dense{20, 5, 1};
  gaps.set(shape, strides);
  const ArrayView array{memory.data(), DataType::int16, &gaps};
  CHECK(!array.is_dense());
  CHECK(array.bytes_of_piece() == 10);
  for (std::int64_t first = 0; first < 60; ++first)
    for (std::int64_t count = 1; first + count <= 60; ++count) {
      std::int64_t next = first;
      array.for_each(first, count, [&](const std::byte* data, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i, ++next) {
          const std::int64_t place = next / 20 * 100 + next / 5 % 4 * 10 + next % 5;
          REQUIRE(data + 2 * i == memory.data() + 2 * place);
        }
      });
      REQUIRE(next == first + count);
    }
  // Moved elsewhere, and used for another array.
  ArrayGaps moved = std::move(gaps);
  CHECK((ArrayView{memory.data(), DataType::int16, &moved}.bytes_of_piece() == 10));
  moved.set(shape, dense);
  CHECK(moved.is_empty());
  CHECK((ArrayView{memory.data(), DataType::int16, &moved}.is_dense()));
}
