// SPDX-License-Identifier: BSD-3-Clause
// A table of ranks by position, for layouts that arithmetic cannot describe.
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

/// A table that gives the rank at each position. All parts of a plan that need the table share it.
/// The table is immutable, and several threads can use it safely. It takes 12 to 16 bytes of memory
/// per position if the ranks are dense (the highest rank is below twice the number of ranks), and
/// 24 bytes otherwise. Only layouts that a user or a preset permutes have a table.
class RANKMESH_API RankTable {
 public:
  /// Creates the table in which position i holds `ranks[i]`.
  /// @throws SpecError if a rank is negative or repeated.
  static std::shared_ptr<const RankTable> make(std::vector<std::int64_t> ranks);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(ranks_.size()); }
  /// Returns the rank at a position from 0 to size()-1. The position is not checked.
  [[nodiscard]] std::int64_t rank_at(std::int64_t position) const {
    return ranks_[static_cast<std::size_t>(position)];
  }
  /// Returns the position of a rank, or nothing if the table does not contain the rank. Takes O(1)
  /// time if the ranks are dense, and O(log size) time otherwise.
  [[nodiscard]] std::optional<std::int64_t> position_of(std::int64_t rank) const;
  [[nodiscard]] const std::vector<std::int64_t>& ranks() const { return ranks_; }
  /// Returns the highest rank, or -1 if the table is empty.
  [[nodiscard]] std::int64_t highest() const { return highest_; }
  /// Returns the hash of the ranks as decimal text, each followed by a comma. The first call takes
  /// O(size) time and stores the hash, because every family of a plan asks for it.
  [[nodiscard]] Hash128 hash() const;

 private:
  std::vector<std::int64_t> ranks_;
  std::int64_t highest_ = -1;
  // If the ranks are dense: the position of each rank, or -1 if the rank has no position.
  std::vector<std::int32_t> dense_;
  // If the ranks are not dense: the pairs (rank, position), sorted by rank.
  std::vector<std::pair<std::int64_t, std::int64_t>> positions_;
  mutable std::once_flag hashed_;
  mutable Hash128 hash_;
};

}  // namespace rankmesh
