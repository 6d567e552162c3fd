// SPDX-License-Identifier: BSD-3-Clause
// The other member of a point-to-point operation.
#pragma once

#include <concepts>
#include <cstdint>

#include "rankmesh/base/index.hpp"

namespace rankmesh {

struct Next {};
struct Previous {};
/// Names the next member of the group. For the last member, the next member is the first one.
inline constexpr Next next{};
/// Names the previous member of the group. For the first member, the previous member is the last
/// one.
inline constexpr Previous prev{};

/// Names a member of a group, either by its rank in the group, or relative to the caller by
/// `rankmesh::next` or `rankmesh::prev`.
class Peer {
 public:
  constexpr Peer(RankInGroup rank) : rank_{rank} {}  // implicit: reads as a rank
  template <std::integral I>
  constexpr Peer(I rank) : rank_{rank} {}
  constexpr Peer(Next) : relative_{true}, rank_{1} {}
  constexpr Peer(Previous) : relative_{true}, rank_{-1} {}

  /// Returns the rank in the group, as seen from member `self` of a group of `size` ranks.
  [[nodiscard]] constexpr RankInGroup resolve(RankInGroup self, std::int64_t size) const {
    if (!relative_) return rank_;
    if (rank_.value() > 0) return RankInGroup{self.value() + 1 < size ? self.value() + 1 : 0};
    return RankInGroup{(self.value() > 0 ? self.value() : size) - 1};
  }

 private:
  bool relative_ = false;
  RankInGroup rank_;
};

}  // namespace rankmesh
