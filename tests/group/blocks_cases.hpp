// SPDX-License-Identifier: BSD-3-Clause
// Collectives with random blocks of different sizes, compared with a plain reference.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "rankmesh/rankmesh.hpp"

namespace blocks_cases {

using namespace rankmesh;

using Values = std::vector<std::int32_t>;

inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Returns the value that member `from` sends to member `to` at one place.
inline Values message(std::int64_t from, std::int64_t to, std::int64_t count) {
  Values result;
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<std::int32_t>(from * 10000 + to * 100 + i));
  return result;
}

// Blocks in a buffer of `total` elements; the elements between them stay -1.
inline Values laid_out(const Blocks& blocks, std::int64_t total,
                       const std::function<Values(std::int64_t)>& block) {
  Values result(index(total), -1);
  for (std::size_t k = 0; k < blocks.counts().size(); ++k)
    std::ranges::copy(block(static_cast<std::int64_t>(k)),
                      result.begin() + blocks.displacements()[k]);
  return result;
}

struct RandomBlocks {
  Blocks blocks;
  std::int64_t total;
};

// Random counts, 0 among them, the same on every rank; with gaps or without. Now and then they are
// all 0.
inline RandomBlocks random_blocks(std::mt19937& random, std::int64_t n, unsigned largest) {
  const bool has_gaps = random() % 2 == 0;
  const bool is_empty = random() % 6 == 0;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displacements;
  std::int64_t end = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    counts.push_back(is_empty || random() % 4 == 0 ? 0 : random() % largest);
    displacements.push_back(end);
    end += counts.back() + (has_gaps ? 1 : 0);
  }
  return {has_gaps ? Blocks{counts, displacements} : Blocks{counts}, end};
}

// Exchanges blocks by a matrix of random counts: member k sends the blocks of row k.
inline void check_all_to_all(GroupCoordinator& group, std::mt19937& random, unsigned largest,
                             bool is_async) {
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  std::vector<std::vector<std::int64_t>> matrix(index(n));
  for (auto& row : matrix)
    for (std::int64_t k = 0; k < n; ++k) row.push_back(random() % 3 == 0 ? 0 : random() % largest);
  std::vector<std::int64_t> column;
  for (const auto& row : matrix) column.push_back(row[index(self)]);
  const Blocks sends{matrix[index(self)]};
  const Blocks receives{column};
  const auto sum = [](const std::vector<std::int64_t>& counts) {
    std::int64_t total_count = 0;
    for (const std::int64_t count : counts) total_count += count;
    return total_count;
  };
  const Values to_all = laid_out(sends, sum(sends.counts()), [&](std::int64_t k) {
    return message(self, k, sends.counts()[index(k)]);
  });
  Values from_all(index(sum(column)), -1);
  if (is_async)
    group.all_to_all_v_async(to_all, from_all, sends, receives).wait();
  else
    group.all_to_all_v(to_all, from_all, sends, receives);
  CHECK(from_all == laid_out(receives, sum(column),
                             [&](std::int64_t k) { return message(k, self, column[index(k)]); }));
}

// Checks every form with random blocks. All members pass the same arguments.
// @param largest  no block has more elements than this.
inline void check_forms(GroupCoordinator& group, std::mt19937& random, unsigned largest,
                        bool is_async) {
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  const auto [blocks, total] = random_blocks(random, n, largest);
  const std::int64_t own = blocks.counts()[index(self)];
  const std::int64_t root = static_cast<std::int64_t>(random()) % n;
  const auto block_of = [&](std::int64_t k) { return message(k, 0, blocks.counts()[index(k)]); };
  const Values whole = laid_out(blocks, total, block_of);

  Values out(index(total), -1);
  if (is_async)
    group.all_gather_v_async(block_of(self), out, blocks).wait();
  else
    group.all_gather_v(block_of(self), out, blocks);
  CHECK(out == whole);
  // In place: `in` is this rank's block of `out`.
  std::ranges::fill(out, -1);
  const auto own_block =
      std::span{out}.subspan(index(blocks.displacements()[index(self)]), index(own));
  std::ranges::copy(block_of(self), own_block.begin());
  group.all_gather_v(own_block, out, blocks);
  CHECK(out == whole);

  std::ranges::fill(out, -1);
  if (is_async)
    group.gather_v_async(block_of(self), out, blocks, root).wait();
  else
    group.gather_v(block_of(self), out, blocks, root);
  if (self == root) CHECK(out == whole);

  Values mine(index(own), -1);
  if (is_async)
    group.scatter_v_async(whole, mine, blocks, root).wait();
  else
    group.scatter_v(whole, mine, blocks, root);
  CHECK(mine == block_of(self));

  // Each member contributes the whole times its number from 1; the sum of the numbers is
  // n (n + 1) / 2.
  Values scaled = whole;
  for (auto& value : scaled) value *= static_cast<std::int32_t>(self + 1);
  std::ranges::fill(mine, -1);
  if (is_async)
    group.reduce_scatter_v_async(scaled, mine, blocks).wait();
  else
    group.reduce_scatter_v(scaled, mine, blocks);
  Values expected = block_of(self);
  for (auto& value : expected) value *= static_cast<std::int32_t>(n * (n + 1) / 2);
  CHECK(mine == expected);
  check_all_to_all(group, random, largest, is_async);
}

}  // namespace blocks_cases
