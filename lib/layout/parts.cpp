// SPDX-License-Identifier: BSD-3-Clause
#include "detail/parts.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/detail/private_api.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/role.hpp"

namespace rankmesh {

bool detail::counts_replicas(const std::string& dimension) {
  return role_of(dimension) == FamilyRole::data;
}

RANKMESH_PRIVATE_API std::string detail::part_text(const MeshPlan& plan, Rank rank) {
  std::string text;
  for (const auto& [name, coordinate] : plan.coordinates(rank))
    if (!counts_replicas(name))
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, coordinate.value());
  return text.empty() ? "the whole model" : text;
}

RANKMESH_PRIVATE_API detail::Parts detail::parts_of(const MeshPlan& plan) {
  Parts parts;
  const auto world = static_cast<std::size_t>(plan.world_size());
  parts.key.resize(world);
  std::set<std::string> seen;
  std::uint64_t combinations = 1;
  for (const Layout& view : plan.views()) {
    if (view.size() != plan.world_size())
      throw UsageError{"a view of the mesh leaves ranks out, so it cannot be shrunk",
                       "shrink each grid as a mesh of its own"};
    for (std::size_t d = 0; d < view.dimensions().size(); ++d) {
      const auto& [name, size, stride] = view.dimensions()[d];
      if (counts_replicas(name) || size == 1 || !seen.insert(name).second) continue;
      if (combinations > UINT64_MAX / static_cast<std::uint64_t>(size))
        throw UsageError{"the mesh has too many dimensions to be shrunk", "use fewer views"};
      combinations *= static_cast<std::uint64_t>(size);
      for (std::size_t r = 0; r < world; ++r)
        parts.key[r] =
            parts.key[r] * static_cast<std::uint64_t>(size) +
            static_cast<std::uint64_t>(view.coordinate(static_cast<std::int64_t>(r), d)->value());
    }
  }
  std::vector<std::uint64_t> keys = parts.key;
  std::ranges::sort(keys);
  const auto repeated = std::ranges::unique(keys);
  keys.erase(repeated.begin(), repeated.end());
  parts.count = keys.size();
  for (const std::uint64_t key : parts.key)
    parts.part.push_back(
        static_cast<std::size_t>(std::ranges::lower_bound(keys, key) - keys.begin()));
  return parts;
}

}  // namespace rankmesh
