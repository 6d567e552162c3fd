// SPDX-License-Identifier: BSD-3-Clause
// A table of the rank at each position, for ranks that strides cannot describe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// A table that gives the rank at each position. It exists only if a program, a mesh file or a
/// preset permutes the ranks, or if strides cannot describe a list or a reshape. The layouts and
/// families that need the same table share it. The table is immutable, and several threads can use
/// it safely.
///
/// The ranks are called dense if the highest rank is less than twice the number of ranks. The table
/// takes 12 to 16 bytes of memory per position if the ranks are dense, and 24 bytes otherwise.
class RANKMESH_API RankTable {
 public:
  /// Creates the table in which position i holds `ranks[i]`.
  /// @throws SpecError if a rank is negative or repeated.
  static std::shared_ptr<const RankTable> make(std::vector<std::int64_t> ranks);

  /// Returns the number of ranks.
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(ranks_.size()); }
  /// Returns the rank at a position from 0 to size()-1. The position is not checked.
  [[nodiscard]] std::int64_t rank_at(std::int64_t position) const {
    return ranks_[static_cast<std::size_t>(position)];
  }
  /// Returns the position of a rank, or nothing if the table does not contain the rank. Takes O(1)
  /// time if the ranks are dense, and O(log size) time otherwise.
  [[nodiscard]] std::optional<std::int64_t> position_of(std::int64_t rank) const;
  /// Returns the ranks in their order.
  [[nodiscard]] const std::vector<std::int64_t>& ranks() const { return ranks_; }
  /// Returns the highest rank, or -1 if the table is empty.
  [[nodiscard]] std::int64_t highest() const { return highest_; }
  /// Returns the hash of a text that contains each rank as a decimal number, followed by a comma.
  /// The digest of a plan needs this hash for every family. Therefore the first call, which takes
  /// O(size) time, stores the hash for later calls.
  [[nodiscard]] Hash128 hash() const;

 private:
  std::vector<std::int64_t> ranks_;
  std::int64_t highest_ = -1;
  // The position of each rank, or -1 if the rank has no position. Used only if the ranks are dense.
  std::vector<std::int32_t> dense_;
  // The pairs (rank, position), sorted by rank. Used only if the ranks are not dense.
  std::vector<std::pair<std::int64_t, std::int64_t>> positions_;
  mutable std::once_flag hashed_;
  mutable Hash128 hash_;
};

}  // namespace rankmesh
