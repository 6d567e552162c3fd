// SPDX-License-Identifier: BSD-3-Clause
// The other member of a point-to-point operation.
#pragma once

#include <concepts>
#include <cstdint>

#include "rankmesh/base/index.hpp"

namespace rankmesh {

struct Next {};
struct Previous {};
/// Names the next member of the group. The last member is followed by the first member.
inline constexpr Next next{};
/// Names the previous member of the group. The first member is preceded by the last member.
inline constexpr Previous prev{};

/// Names a member of a group by its rank in the group, or relative to the calling member with
/// `rankmesh::next` or `rankmesh::prev`.
class Peer {
 public:
  /// Refers to a member by its rank in the group. Implicit.
  constexpr Peer(RankInGroup rank) : rank_{rank} {}  // implicit: a rank can be passed as a Peer
  /// Refers to a member by its rank in the group. Implicit.
  template <std::integral I>
  constexpr Peer(I rank) : rank_{rank} {}
  /// Refers to the next member. Implicit.
  constexpr Peer(Next) : relative_{true}, rank_{1} {}
  /// Refers to the previous member. Implicit.
  constexpr Peer(Previous) : relative_{true}, rank_{-1} {}

  /// Returns the peer's rank in the group if the caller is member `self` of a group of `size`
  /// ranks.
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
