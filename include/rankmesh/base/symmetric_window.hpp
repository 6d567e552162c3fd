// SPDX-License-Identifier: BSD-3-Clause
// The addresses of one symmetric allocation in this process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankmesh {

/// One allocation of symmetric memory in the address space of one process. Each rank of the node
/// has a part of `bytes` bytes. The part of local rank k begins at `base + k * stride`.
/// Mesh::allocate_symmetric creates the window.
struct SymmetricWindow {
  std::byte* base = nullptr;    ///< The address of the memory of the first rank of the node.
  std::size_t stride = 0;       ///< The distance in bytes between the memories of two ranks.
  std::size_t bytes = 0;        ///< The number of bytes of each rank.
  std::int32_t local_rank = 0;  ///< the local rank of this process
  bool is_open = true;          ///< false after the mesh that made the window is closed
  /// The identities of the groups whose collectives can use this memory directly.
  std::vector<const void*> groups;

  /// Returns whether the collectives of a group can use this memory directly.
  /// @param group  the identity of the group, in the form that the mesh stored in `groups`.
  [[nodiscard]] bool serves(const void* group) const {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }

  /// Returns the address of the part that belongs to a local rank.
  [[nodiscard]] std::byte* part(std::int32_t local) const {
    return base + static_cast<std::size_t>(local) * stride;
  }
  /// Returns the address of the part that belongs to this process.
  [[nodiscard]] std::byte* own() const { return part(local_rank); }
};

}  // namespace rankmesh
