// SPDX-License-Identifier: BSD-3-Clause
// Which members of a group have kept which elements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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

/// Makes places from places. Many tensors have equal ones, for which it is done once.
class OncePerPlace {
 public:
  template <class Make>
  const TensorPlacement& of(const std::string& text, Make&& make) {
    auto found = made_.find(text);
    if (found == made_.end()) found = made_.emplace(text, make()).first;
    return found->second;
  }

 private:
  std::unordered_map<std::string, TensorPlacement> made_;
};

/// The same on all members that have kept a step.
struct KeptLayout {
  /// @param mesh  The key of their mesh.
  /// @param members  Their ranks in the mesh.
  /// @param distance  From each member to the one that keeps its copies.
  KeptLayout(std::int64_t mesh, RankSet members, std::int64_t distance,
             std::vector<KeptTensor> list);
  /// Reads what to_text() has written.
  static std::shared_ptr<const KeptLayout> parse(const std::string& text);

  RankSet ranks;
  std::int64_t distance;
  std::vector<KeptTensor> tensors;
  std::string text;
  Hash128 hash;

  /// Returns the tensor of this name, or null.
  [[nodiscard]] const KeptTensor* find(const std::string& name) const;

 private:
  std::unordered_map<std::string, std::size_t> by_name_;
};

/// Returns the layout of tensors on the members of a group.
/// @param tensors  Their copies are not set.
[[nodiscard]] std::shared_ptr<const KeptLayout> layout_of(const GroupCoordinator& group,
                                                          std::vector<KeptTensor> tensors);

}  // namespace rankmesh::exchange::detail
