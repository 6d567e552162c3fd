// SPDX-License-Identifier: BSD-3-Clause
// What a rank has kept in a step, and which of it can be restored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kept_layout.hpp"
#include "rankmesh/base/buffer.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// All that this rank has kept in a step.
struct KeptVersion {
  static constexpr std::int64_t incomplete = -1;

  std::int64_t number = incomplete;  ///< In the order of their completion, the same on all members.
  std::int64_t step = 0;
  Rank self = 0;  ///< This rank as a member of the group.
  std::shared_ptr<const KeptLayout> layout{};
  /// Of each tensor: its elements, followed by copies. MPI may use it after a wait has failed, so
  /// it may have several owners.
  std::vector<std::shared_ptr<std::byte[]>> memory{};

  [[nodiscard]] Buffer part(std::size_t tensor, std::int64_t first, std::int64_t count) const {
    const DataType type = layout->tensors[tensor].place.type();
    return {memory[tensor].get() + first * static_cast<std::int64_t>(size_of(type)), count, type};
  }
  [[nodiscard]] Buffer own(std::size_t tensor) const {
    return part(tensor, 0, layout->tensors[tensor].place.local_count(self));
  }
  [[nodiscard]] Buffer copies(std::size_t tensor) const {
    const KeptTensor& kept = layout->tensors[tensor];
    return part(tensor, kept.place.local_count(self), kept.copy->local_count(self));
  }
  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t bytes = 0;
    for (std::size_t t = 0; t < memory.size(); ++t)
      bytes += layout->tensors[t].count(self) *
               static_cast<std::int64_t>(size_of(layout->tensors[t].place.type()));
    return bytes;
  }
  /// Returns what holds another layout: the same memory if it fits, which is not written yet.
  [[nodiscard]] KeptVersion with(std::shared_ptr<const KeptLayout> other, Rank member) const {
    KeptVersion version{.self = member, .layout = std::move(other)};
    const bool fits = layout != nullptr && layout->hash == version.layout->hash && self == member &&
                      !memory.empty();
    if (fits) version.memory = memory;
    for (std::size_t t = 0; !fits && t < version.layout->tensors.size(); ++t) {
      const KeptTensor& tensor = version.layout->tensors[t];
      version.memory.emplace_back(std::make_unique_for_overwrite<std::byte[]>(
          static_cast<std::size_t>(tensor.count(member)) * size_of(tensor.place.type())));
    }
    return version;
  }
};

/// Two of them: what was kept before stays until the next one is complete on all members.
using KeptVersions = std::array<KeptVersion, 2>;

/// A version that is restored, and how its elements get to the members.
struct KeptChoice {
  std::int64_t number;  ///< KeptVersion::number
  TransferPlan plan;
};

/// Chooses a version of a step from which all tensors can be restored. Collective over the group.
/// @throws LostElements on all members if there is none.
[[nodiscard]] KeptChoice choose(GroupCoordinator& group, const KeptVersions& versions,
                                std::int64_t step, const KeptLayout& wanted);

}  // namespace rankmesh::exchange::detail
