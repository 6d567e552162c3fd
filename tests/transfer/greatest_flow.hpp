// SPDX-License-Identifier: BSD-3-Clause
// The least number of elements that the busiest sender must send, by maximum flow, element by
// element and independently of the library's planning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <span>
#include <vector>

#include "rankmesh/transfer/plan.hpp"

namespace rankmesh_test {

/// A network in which the greatest flow is found by shortest augmenting paths.
class Network {
 public:
  explicit Network(std::size_t nodes) : edges_of_(nodes) {}

  void add(std::size_t from, std::size_t to, std::int64_t capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  std::int64_t greatest_flow(std::size_t source, std::size_t sink) {
    std::int64_t flow = 0;
    for (;;) {
      constexpr std::size_t none = SIZE_MAX;
      std::vector<std::size_t> reached_by(edges_of_.size(), none);
      std::queue<std::size_t> queue{{source}};
      while (!queue.empty() && reached_by[sink] == none) {
        const std::size_t node = queue.front();
        queue.pop();
        for (const std::size_t e : edges_of_[node])
          if (edges_[e].capacity > 0 && edges_[e].to != source &&
              reached_by[edges_[e].to] == none) {
            reached_by[edges_[e].to] = e;
            queue.push(edges_[e].to);
          }
      }
      if (reached_by[sink] == none) return flow;
      std::int64_t amount = INT64_MAX;
      for (std::size_t node = sink; node != source; node = edges_[reached_by[node] ^ 1].to)
        amount = std::min(amount, edges_[reached_by[node]].capacity);
      for (std::size_t node = sink; node != source; node = edges_[reached_by[node] ^ 1].to) {
        edges_[reached_by[node]].capacity -= amount;
        edges_[reached_by[node] ^ 1].capacity += amount;
      }
      flow += amount;
    }
  }

 private:
  struct Edge {
    std::size_t to;
    std::int64_t capacity;
  };
  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_;
};

/// Returns the ranks that have an element before a transfer, in ascending order.
inline std::vector<std::int64_t> holders_of(const rankmesh::TensorTransfer& move,
                                            std::span<const std::int64_t> index,
                                            const std::vector<rankmesh::Rank>& lost) {
  std::set<std::int64_t> holders;
  for (const rankmesh::TensorPlacement& place : {move.from, move.copy.value_or(move.from)})
    for (const rankmesh::Rank rank : place.ranks().to_vector())
      if (place.local_offset(rank, index) && std::ranges::find(lost, rank) == lost.end())
        holders.insert(rank.value());
  return {holders.begin(), holders.end()};
}

/// The needs, by the set of ranks that can meet them.
inline std::map<std::vector<std::int64_t>, std::int64_t> needs_of(
    const rankmesh::TensorTransfer& move, const std::vector<rankmesh::Rank>& lost) {
  std::map<std::vector<std::int64_t>, std::int64_t> needs;
  std::vector<std::int64_t> index(move.from.shape().size(), 0);
  const auto targets = move.to.ranks().to_vector();
  for (std::int64_t number = 0; number < move.from.element_count(); ++number) {
    std::int64_t rest = number;
    for (std::size_t a = index.size(); a-- > 0; rest /= move.from.shape()[a])
      index[a] = rest % move.from.shape()[a];
    const std::vector<std::int64_t> holders = holders_of(move, index, lost);
    for (const rankmesh::Rank rank : targets)
      if (move.to.local_offset(rank, index) && !std::ranges::binary_search(holders, rank.value()))
        ++needs[holders];
  }
  return needs;
}

/// The least number of elements that the busiest rank sends.
inline std::int64_t least_most_sent(const rankmesh::TensorTransfer& move,
                                    const std::vector<rankmesh::Rank>& lost = {}) {
  const auto needs = needs_of(move, lost);
  std::int64_t all = 0;
  std::set<std::int64_t> ranks;
  for (const auto& [holders, count] : needs) {
    all += count;
    ranks.insert(holders.begin(), holders.end());
  }
  const auto suffices = [&](std::int64_t most) {
    Network network{2 + needs.size() + ranks.size()};
    std::map<std::int64_t, std::size_t> node_of;
    for (const std::int64_t rank : ranks) {
      node_of.emplace(rank, 2 + needs.size() + node_of.size());
      network.add(node_of[rank], 1, most);
    }
    std::size_t node = 2;
    for (const auto& [holders, count] : needs) {
      network.add(0, node, count);
      for (const std::int64_t holder : holders) network.add(node, node_of[holder], count);
      ++node;
    }
    return network.greatest_flow(0, 1) == all;
  };
  std::int64_t least = 0;
  for (std::int64_t step = std::int64_t{1} << 20; step > 0; step /= 2)
    if (!suffices(least + step - 1)) least += step;
  return least;
}

}  // namespace rankmesh_test
