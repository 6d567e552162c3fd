// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_tree.hpp"

#include <algorithm>
#include <numeric>

#include "detail/input.hpp"

namespace rankmesh::detail {

Unions::Unions(std::size_t count) : parent_(count) {
  std::iota(parent_.begin(), parent_.end(), std::size_t{0});
}

std::size_t Unions::root(std::size_t a) const {
  while (parent_[a] != a) a = parent_[a];
  return a;
}

void Unions::join(std::size_t a, std::size_t b) {
  const std::size_t first = root(a);
  const std::size_t second = root(b);
  parent_[std::max(first, second)] = std::min(first, second);
}

std::vector<std::int32_t> Unions::numbers() const {
  std::vector<std::int32_t> number(parent_.size(), -1);
  std::int32_t next = 0;
  for (std::size_t a = 0; a < parent_.size(); ++a)
    number[a] = root(a) == a ? next++ : number[root(a)];
  return number;
}

NodeShape shape_of(DeviceTree tree, std::string_view origin) {
  constexpr std::size_t most_gpus = 256;
  if (tree.gpus.size() > most_gpus || tree.nics.size() > 4 * most_gpus)
    refuse(origin, 0, "a node has more than 256 GPUs, or more than 1,024 network interfaces",
           "describe one node");
  if (tree.sockets.size() > most_gpus)
    refuse(origin, 0, "a node has more than 256 sockets", "describe one node");
  NodeShape shape;
  shape.sockets = static_cast<std::int32_t>(std::max<std::size_t>(1, tree.sockets.size()));
  Unions domains{tree.gpus.size()};
  for (const auto& [a, b] : tree.links) domains.join(a, b);
  const std::vector<std::int32_t> domain = domains.numbers();
  std::vector<int> uses(tree.nics.size());
  for (std::size_t g = 0; g < tree.gpus.size(); ++g) {
    const DeviceTree::Device& gpu = tree.gpus[g];
    NodeShape::Gpu found{.device = gpu.number, .domain = domain[g]};
    const auto socket = std::ranges::find(tree.sockets, gpu.socket);
    found.socket = static_cast<std::int32_t>(socket - tree.sockets.begin());
    std::ptrdiff_t most_shared = -1;
    std::size_t nearest = tree.nics.size();
    for (std::size_t n = 0; n < tree.nics.size(); ++n) {
      const auto& path = tree.nics[n].path;
      const std::ptrdiff_t shared = std::ranges::mismatch(gpu.path, path).in1 - gpu.path.begin();
      if (shared < most_shared || (shared == most_shared && uses[n] >= uses[nearest])) continue;
      most_shared = shared;
      nearest = n;
    }
    if (nearest < tree.nics.size()) {
      found.nic = tree.nics[nearest].name;
      ++uses[nearest];
    }
    shape.gpus.push_back(std::move(found));
  }
  std::ranges::stable_sort(shape.gpus, {}, &NodeShape::Gpu::device);
  shape.has_sockets =
      tree.sockets.size() > 1 && std::ranges::all_of(tree.gpus, [&](const auto& gpu) {
        return std::ranges::find(tree.sockets, gpu.socket) != tree.sockets.end();
      });
  return shape;
}

}  // namespace rankmesh::detail
