// SPDX-License-Identifier: BSD-3-Clause
// The blocks of a buffer, one per member of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/base/buffer.hpp"

namespace rankmesh {

/// Divides a buffer into blocks. Block k belongs to member k of the group. Each block has a count
/// and a displacement from the beginning of the buffer, both in elements. Counts may be 0.
class Blocks {
 public:
  /// Creates blocks that follow each other without gaps.
  /// @param counts  One count per member, in elements.
  Blocks(std::span<const std::int64_t> counts)
      : counts_{counts.begin(), counts.end()} {  // implicit: Blocks can be given as counts
    std::int64_t total = 0;
    for (const std::int64_t count : counts_) {
      displacements_.push_back(total);
      total += count;
    }
  }
  Blocks(const std::vector<std::int64_t>& counts) : Blocks{std::span{counts}} {}
  /// Creates blocks at the given displacements.
  /// @param counts, displacements  One count and one displacement per member, in elements.
  Blocks(std::span<const std::int64_t> counts, std::span<const std::int64_t> displacements)
      : counts_{counts.begin(), counts.end()},
        displacements_{displacements.begin(), displacements.end()} {}

  [[nodiscard]] const std::vector<std::int64_t>& counts() const { return counts_; }
  [[nodiscard]] const std::vector<std::int64_t>& displacements() const { return displacements_; }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> displacements_;
};

/// Returns block k of a buffer, or the whole buffer if `blocks` is null.
template <class Byte>
BasicBuffer<Byte> block_of(const BasicBuffer<Byte>& buffer, const Blocks* blocks, std::size_t k) {
  return blocks == nullptr ? buffer : buffer.slice(blocks->displacements()[k], blocks->counts()[k]);
}

}  // namespace rankmesh
