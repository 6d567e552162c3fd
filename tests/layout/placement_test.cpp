// SPDX-License-Identifier: BSD-3-Clause
// Which node each rank is on.
#include "rankmesh/layout/placement.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using rankmesh::Placement;
using rankmesh::Rank;
using rankmesh::RankSet;

TEST_CASE("nodes are numbered by their lowest rank, and their ranks in rank order") {
  const Placement placement{{70, 5, 70, -3, 5, 70}};
  CHECK(placement.world_size() == 6);
  CHECK(placement.node_count() == 3);
  const std::vector<std::int32_t> nodes{0, 1, 0, 2, 1, 0};
  const std::vector<std::int32_t> local_ranks{0, 0, 1, 0, 1, 2};
  for (std::int64_t r = 0; r < 6; ++r) {
    CAPTURE(r);
    CHECK(placement.node(r) == nodes[static_cast<std::size_t>(r)]);
    CHECK(placement.local_rank(r) == local_ranks[static_cast<std::size_t>(r)]);
  }
}

TEST_CASE("a group touches the nodes of its members, each counted once") {
  const Placement placement{{0, 0, 1, 1, 2, 2}};
  const auto nodes_of = [&](std::vector<Rank> ranks) {
    return placement.nodes_of(RankSet::of(ranks));
  };
  CHECK(nodes_of({3}) == 1);
  CHECK(nodes_of({0, 1}) == 1);
  CHECK(nodes_of({1, 2}) == 2);
  CHECK(nodes_of({5, 0, 4, 1}) == 2);
  CHECK(nodes_of({0, 1, 2, 3, 4, 5}) == 3);
}

TEST_CASE("ranks have cores of their own on nodes with at least as many cores as ranks") {
  const Placement placement{{0, 0, 1, 1, 1}, {2, 2, 2, 2, 2}};
  const auto own = [&](std::vector<Rank> ranks) {
    return placement.has_own_cores(RankSet::of(ranks));
  };
  CHECK(placement.cores(0) == 2);
  CHECK(own({0, 1}) == true);
  CHECK(own({2}) == false);  // the other ranks of the node count
  CHECK(own({0, 2}) == false);
  const Placement unknown{{0, 0}};
  CHECK_FALSE(unknown.cores(0).has_value());
  CHECK_FALSE(unknown.has_own_cores(RankSet::range(0, 2)).has_value());
}
