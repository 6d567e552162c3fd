// SPDX-License-Identifier: BSD-3-Clause
#include "search/groups.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace rankmesh::search {
namespace {

using MeshKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

MeshKey key_of(const MeshSettings& s) { return {s.pp, s.dp, s.cp, s.tp, s.ep}; }

bool is_better(const Candidate& a, const Candidate& b) {
  return std::tuple{a.fit, a.bytes, a.seconds} < std::tuple{b.fit, b.bytes, b.seconds};
}

bool finds_fit(const CostModel& cost, SearchOptions options, std::int64_t devices) {
  options.devices = devices;
  return !search(cost, options).candidates.empty();
}

}  // namespace

std::vector<GroupedCandidate> grouped(std::span<const Candidate> candidates, std::size_t most) {
  std::vector<GroupedCandidate> result;
  std::map<MeshKey, std::size_t> seen;  // the group of each mesh
  std::size_t group = 0;
  for (std::size_t begin = 0; begin < candidates.size() && result.size() < most; ++group) {
    const double limit = static_cast<double>(candidates[begin].seconds) * (1 + same_time);
    std::map<MeshKey, Candidate> best;
    for (; begin < candidates.size() && candidates[begin].seconds <= limit; ++begin) {
      const Candidate& one = candidates[begin];
      if (seen.try_emplace(key_of(one.settings), group).first->second != group) continue;
      const auto [found, is_new] = best.try_emplace(key_of(one.settings), one);
      if (!is_new && is_better(one, found->second)) found->second = one;
    }
    std::vector<Candidate> sorted;
    for (const auto& [key, one] : best) sorted.push_back(one);
    std::ranges::stable_sort(sorted, is_better);
    for (const Candidate& one : sorted)
      if (result.size() < most) result.push_back({one, group + 1});
  }
  return result;
}

std::optional<std::int64_t> least_devices(const CostModel& cost, SearchOptions options) {
  const std::int64_t step = cost.device().per_node;
  std::int64_t low = options.devices, high = options.devices * 2;
  while (!finds_fit(cost, options, high)) {
    low = high;
    high *= 2;
    if (high > options.devices * 64) return {};
  }
  while (high - low > step && (high - low) * 16 > low) {
    const std::int64_t middle = std::max(low + 1, (low + high) / 2 / step * step);
    if (middle >= high) break;
    (finds_fit(cost, options, middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace rankmesh::search
