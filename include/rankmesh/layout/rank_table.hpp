// A map from position to rank, for layouts that no arithmetic describes.
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

/// Position i holds rank `ranks[i]`. Shared by everything in a plan that needs it; immutable.
/// Memory: 12 to 16 bytes per position where the ranks are dense (the highest below twice their
/// number), else
/// 24. Only layouts that a user or a preset permutes have one.
class RANKMESH_API RankTable {
 public:
  /// @throws SpecError where a rank is negative or stands twice.
  static std::shared_ptr<const RankTable> make(std::vector<std::int64_t> ranks);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(ranks_.size()); }
  [[nodiscard]] std::int64_t rank_at(std::int64_t position) const {
    return ranks_[static_cast<std::size_t>(position)];
  }
  /// O(1) where the ranks are dense, else O(log size).
  [[nodiscard]] std::optional<std::int64_t> position_of(std::int64_t rank) const;
  [[nodiscard]] const std::vector<std::int64_t>& ranks() const { return ranks_; }
  /// -1 where the table is empty.
  [[nodiscard]] std::int64_t highest() const { return highest_; }
  /// Of the ranks as decimal text, each followed by a comma. O(size) the first time; every name of
  /// a plan asks.
  [[nodiscard]] Hash128 hash() const;

 private:
  std::vector<std::int64_t> ranks_;
  std::int64_t highest_ = -1;
  std::vector<std::int32_t>
      dense_;  // position by rank, -1 for none; empty where the ranks are not dense
  std::vector<std::pair<std::int64_t, std::int64_t>>
      positions_;  // (rank, position), by rank, where not
  mutable std::once_flag hashed_;
  mutable Hash128 hash_;
};

}  // namespace rankmesh
