// How a buffer is divided among the members of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/base/buffer.hpp"

namespace rankmesh {

/// Block k belongs to member k: how many elements it has, and where it begins. Counts may be 0.
class Blocks {
 public:
  /// One after the other, without gaps.
  Blocks(std::span<const std::int64_t> counts)
      : counts_{counts.begin(), counts.end()} {  // implicit: reads as counts
    std::int64_t total = 0;
    for (const std::int64_t count : counts_) {
      displacements_.push_back(total);
      total += count;
    }
  }
  Blocks(const std::vector<std::int64_t>& counts) : Blocks{std::span{counts}} {}
  /// Anywhere; displacements in elements.
  Blocks(std::span<const std::int64_t> counts, std::span<const std::int64_t> displacements)
      : counts_{counts.begin(), counts.end()},
        displacements_{displacements.begin(), displacements.end()} {}

  [[nodiscard]] const std::vector<std::int64_t>& counts() const { return counts_; }
  [[nodiscard]] const std::vector<std::int64_t>& displacements() const { return displacements_; }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> displacements_;
};

/// Member k's part of a buffer that is divided so; all of it where it is not divided.
template <class Byte>
BasicBuffer<Byte> block_of(const BasicBuffer<Byte>& buffer, const Blocks* blocks, std::size_t k) {
  return blocks == nullptr ? buffer : buffer.slice(blocks->displacements()[k], blocks->counts()[k]);
}

}  // namespace rankmesh
