// Where the ranks of a node hold memory that all of them can address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankmesh {

/// One allocation of symmetric memory, as one process sees it: each rank of the node has a part of
/// `bytes` bytes, and the part of local rank k begins at `base + k * stride`. Made by
/// Mesh::allocate_symmetric.
struct SymmetricWindow {
  std::byte* base = nullptr;
  std::size_t stride = 0;
  std::size_t bytes = 0;
  std::int32_t local_rank = 0;      ///< of this process
  bool is_open = true;              ///< false once the mesh that made it is closed
  std::vector<const void*> groups;  ///< whose collectives use it in place

  [[nodiscard]] bool serves(const void* group) const {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }

  [[nodiscard]] std::byte* part(std::int32_t local) const {
    return base + static_cast<std::size_t>(local) * stride;
  }
  [[nodiscard]] std::byte* own() const { return part(local_rank); }
};

}  // namespace rankmesh
