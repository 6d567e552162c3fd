// SPDX-License-Identifier: BSD-3-Clause
// Blocks of different sizes, against a plain reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::size;

namespace {

using Values = std::vector<std::int32_t>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Returns the value that member `from` sends to member `to` at one place.
Values message(std::int64_t from, std::int64_t to, std::int64_t count) {
  Values result;
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<std::int32_t>(from * 10000 + to * 100 + i));
  return result;
}

// Blocks in a buffer of `total` elements; the elements between them stay -1.
Values laid_out(const Blocks& blocks, std::int64_t total,
                const std::function<Values(std::int64_t)>& block) {
  Values result(index(total), -1);
  for (std::size_t k = 0; k < blocks.counts().size(); ++k)
    std::ranges::copy(block(static_cast<std::int64_t>(k)),
                      result.begin() + blocks.displacements()[k]);
  return result;
}

struct Shape {
  Blocks blocks;
  std::int64_t total;
};

// Random counts, 0 among them, the same on every rank; with gaps or without.
Shape shape(std::mt19937& random, std::int64_t n, bool has_gaps) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displacements;
  std::int64_t end = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    counts.push_back(random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % 40));
    displacements.push_back(end);
    end += counts.back() + (has_gaps ? 1 : 0);
  }
  return {has_gaps ? Blocks{counts, displacements} : Blocks{counts}, end};
}

// Exchanges blocks by a matrix of random counts: member k sends the blocks of row k.
void check_all_to_all(GroupCoordinator& group, std::mt19937& random, bool is_async) {
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  std::vector<std::vector<std::int64_t>> matrix(index(n));
  for (auto& row : matrix)
    for (std::int64_t k = 0; k < n; ++k) row.push_back(static_cast<std::int64_t>(random() % 7));
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

}  // namespace

TEST_CASE("every form with blocks, blocking and not, with gaps and without") {
  Mesh mesh{MPI_COMM_WORLD,
            size() % 2 == 0 ? "dp=2,tp=auto ; all=dp*tp" : "dp=1,tp=auto ; all=dp*tp"};
  std::mt19937 random{5};
  for (int round = 0; round < 12; ++round) {
    auto& group = mesh[round % 3 == 0 ? "dp" : round % 3 == 1 ? "tp" : "all"];
    const std::int64_t n = group.size();
    const std::int64_t self = group.rank_in_group().value();
    const bool is_async = round % 2 == 0;
    CAPTURE(round);
    const auto [blocks, total] = shape(random, n, round % 4 < 2);
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
    check_all_to_all(group, random, is_async);
  }
  mesh.close();
}

// Displacements are a matter of each member, so they must not decide which function of MPI is
// called: the members would call different ones.
TEST_CASE("the blocks of a reduction have gaps on some members only") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  const std::int64_t self = tp.rank_in_group().value();
  for (const bool is_async : {false, true}) {
    std::vector<std::int64_t> counts, displacements;
    std::int64_t end = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      counts.push_back(k + 1);
      displacements.push_back(end);
      end += k + 1 + (self % 2 == 1 ? 2 : 0);
    }
    const Blocks blocks{counts, displacements};
    Values in(index(end), 100);
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t i = 0; i < counts[index(k)]; ++i)
        in[index(displacements[index(k)] + i)] = static_cast<std::int32_t>(k * 10 + i);
    Values out(index(self + 1), -1);
    if (is_async)
      tp.reduce_scatter_v_async(in, out, blocks).wait();
    else
      tp.reduce_scatter_v(in, out, blocks);
    for (std::int64_t i = 0; i <= self; ++i)
      CHECK(out[index(i)] == static_cast<std::int32_t>(n * (self * 10 + i)));
  }
  mesh.close();
}

TEST_CASE("invalid blocks throw UsageError") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::vector<std::int64_t> counts(index(tp.size()), 2);
  Values in(2);
  Values out(index(2 * tp.size()));
  tp.all_gather_v(in, out, counts);
  Values small(index(2 * tp.size() - 1));
  CHECK_THROWS_WITH_AS(tp.all_gather_v(in, small, counts), doctest::Contains("lies outside"),
                       UsageError);
  if (tp.size() > 1) CHECK_THROWS_AS(tp.all_gather_v(out, out, counts), UsageError);
  if (tp.size() > 1) {
    counts.back() = -1;
    CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, counts), doctest::Contains("has -1 elements"),
                         UsageError);
    CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, counts), doctest::Contains("tp.all_gather_v on"),
                         UsageError);
    counts.back() = 2;
    // No element of the output may belong to two blocks; empty blocks may lie anywhere.
    std::vector<std::int64_t> displacements(counts.size());
    for (std::size_t k = 0; k < counts.size(); ++k)
      displacements[k] = 2 * (std::ssize(counts) - 1) - 2 * static_cast<std::int64_t>(k);
    tp.all_gather_v(in, out, Blocks{counts, displacements});
    displacements.back() = 1;
    CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, Blocks{counts, displacements}),
                         doctest::Contains("of out overlap"), UsageError);
    if (tp.is_first())
      CHECK_THROWS_WITH_AS(tp.gather_v(in, out, Blocks{counts, displacements}, 0),
                           doctest::Contains("of out overlap"), UsageError);
    if (tp.is_first())
      CHECK_THROWS_WITH_AS(tp.recv(in, 0), doctest::Contains("the source is the caller itself"),
                           UsageError);
  }
  counts.push_back(1);
  CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, counts), doctest::Contains("counts and"),
                       UsageError);
  mesh.close();
}
