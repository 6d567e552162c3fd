// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/shape.hpp"

#include <algorithm>

namespace rankmesh::levels {

Shape::Shape(const std::vector<int>& node_of, int own) : self{own} {
  std::vector<int> known;  // the given numbers, in the order of the nodes here
  for (int member = 0; member < static_cast<int>(node_of.size()); ++member) {
    const int given = node_of[static_cast<std::size_t>(member)];
    const auto found = std::ranges::find(known, given);
    const auto node = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) {
      known.push_back(given);
      nodes.emplace_back();
    }
    places.push_back({static_cast<int>(node), static_cast<int>(nodes[node].size())});
    nodes[node].push_back(member);
  }
  carriers = static_cast<int>(
      std::ranges::min_element(nodes, {}, [](const auto& list) { return list.size(); })->size());
}

}  // namespace rankmesh::levels
