// SPDX-License-Identifier: BSD-3-Clause
// The addresses of symmetric memory in this process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankmesh {

/// One allocation of symmetric memory, as one process sees it. Each rank of the node has a part of
/// `bytes` bytes; the part of local rank k begins at `base + k * stride`. Mesh::allocate_symmetric
/// creates the window.
struct SymmetricWindow {
  std::byte* base = nullptr;
  std::size_t stride = 0;
  std::size_t bytes = 0;
  std::int32_t local_rank = 0;  ///< the local rank of this process
  bool is_open = true;          ///< false after the mesh that made the window is closed
  /// The identities of the groups whose collectives use the memory directly.
  std::vector<const void*> groups;

  /// Returns whether the collectives of a group can use this memory directly.
  /// @param group  the identity that the mesh put into `groups`.
  [[nodiscard]] bool serves(const void* group) const {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }

  /// Returns the address of the part of a local rank.
  [[nodiscard]] std::byte* part(std::int32_t local) const {
    return base + static_cast<std::size_t>(local) * stride;
  }
  /// Returns the address of the part of this process.
  [[nodiscard]] std::byte* own() const { return part(local_rank); }
};

}  // namespace rankmesh
