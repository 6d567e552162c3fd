// SPDX-License-Identifier: BSD-3-Clause
#include "detail/copies.hpp"

#include <algorithm>
#include <utility>

#include "detail/cells.hpp"

namespace rankmesh::detail {
namespace {

// Bounds the work for groups of many ranks. Replicas and nodes that are numbered regularly have a
// small distance.
constexpr std::int64_t most_distances = 4096;

// Returns how many ranks are in the domain of the rank at a distance.
std::int64_t count_same(const std::vector<std::int64_t>& domains, std::int64_t distance) {
  std::int64_t count = 0;
  for (std::size_t r = 0; r < domains.size(); ++r)
    if (domains[r] == domains[(r + static_cast<std::size_t>(distance)) % domains.size()]) ++count;
  return count;
}

bool are_several(const std::vector<std::int64_t>& domains) {
  return std::ranges::adjacent_find(domains, std::not_equal_to{}) != domains.end();
}

bool are_in_one(const std::vector<Rank>& ranks, const std::vector<std::int64_t>& domains) {
  return are_several(domains) && std::ranges::all_of(ranks, [&](Rank rank) {
           return domains[rank.to_size()] == domains[ranks.front().to_size()];
         });
}

}  // namespace

std::int64_t distance_of_copies(const FailureDomains& domains) {
  const auto ranks = std::ssize(domains.nodes);
  std::pair<std::int64_t, std::int64_t> least{INT64_MAX, 0};
  std::int64_t best = 0;
  for (std::int64_t distance = 1; distance < std::min(ranks, most_distances); ++distance) {
    const std::pair same{count_same(domains.replicas, distance),
                         count_same(domains.nodes, distance)};
    if (same < least) best = distance, least = same;
  }
  return best;
}

bool needs_copies(const TensorPlacement& place, const FailureDomains& domains) {
  const CellRanks ranks{place.data()};
  bool needs = false;
  for_each_cell_of(place.data(), [&](const Classes& cell) {
    const std::vector<Rank> holders = ranks.of(cell, 0);
    needs = needs || holders.size() == 1 || are_in_one(holders, domains.replicas) ||
            are_in_one(holders, domains.nodes);
  });
  return needs && domains.nodes.size() > 1;
}

TensorPlacement renumbered(const TensorPlacement& place,
                           const std::function<std::int64_t(std::int64_t)>& number) {
  const TensorPlacement::Data& data = place.data();
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < data.mesh_layout.size(); ++r)
    ranks.emplace_back(number(data.on ? data.on->at(r).value() : r));
  return place.on(RankSet::of(ranks));
}

}  // namespace rankmesh::detail
