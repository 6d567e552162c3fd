// SPDX-License-Identifier: BSD-3-Clause
// Which members of a group have kept which elements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/transfer/placement.hpp"
#include "transfer/detail/copies.hpp"

namespace rankmesh::exchange::detail {

/// A tensor that is kept, and the place of its copies on other members, if it needs them.
struct KeptTensor {
  std::string name;
  TensorPlacement place;
  std::optional<TensorPlacement> copy{};

  /// Returns the number of elements that a member keeps: its own, followed by copies.
  [[nodiscard]] std::int64_t count(Rank member) const {
    return place.local_count(member) + (copy ? copy->local_count(member) : 0);
  }
};

/// The same on all members that have kept a step.
struct KeptLayout {
  /// @param mesh  The key of their mesh.
  /// @param members  Their ranks in the mesh.
  /// @param distance  From each member to the one that keeps its copies.
  KeptLayout(std::int64_t mesh, RankSet members, std::int64_t distance,
             std::vector<KeptTensor> list);
  /// Reads what to_text() has written.
  static std::shared_ptr<const KeptLayout> parse(std::string_view text);

  RankSet ranks;
  std::int64_t distance;
  std::vector<KeptTensor> tensors;
  std::string text;
  Hash128 hash;

  [[nodiscard]] const KeptTensor* find(std::string_view name) const;
};

/// Returns the layout of tensors on the members of a group.
/// @param tensors  Their copies are not set.
[[nodiscard]] std::shared_ptr<const KeptLayout> layout_of(const GroupCoordinator& group,
                                                          std::vector<KeptTensor> tensors);

}  // namespace rankmesh::exchange::detail
