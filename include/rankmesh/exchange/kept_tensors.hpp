// SPDX-License-Identifier: BSD-3-Clause
// Tensors in the memory of several ranks, from which the survivors of a loss go on.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "rankmesh/exchange/named_tensors.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange {

/// Keeps tensors in the memory of the ranks, as a checkpoint does in files: after each step, keep()
/// copies this rank's elements, and elements of another rank that would be lost with it. After a
/// loss, restore() moves them to the tensors of the next mesh. docs/surviving.md has a program.
///
/// The object outlives the mesh. It has memory for two steps: what was kept before stays until the
/// next step is complete. A step counts when Mesh::commit() says so, so call commit() after each
/// keep(). Move-only. Thread safety: the rules of the group apply.
///
/// The tensors may be in device memory. What is kept is in host memory. keep() and restore() copy
/// on the default stream, so the work on other streams that uses the tensors must have ended
/// before.
class RANKMESH_API KeptTensors {
 public:
  /// @param options  Of the Redistribution that moves the elements.
  explicit KeptTensors(RedistributionOptions options = {});
  ~KeptTensors();
  /// Takes over the tensors. The source can then only be destroyed or assigned to.
  KeptTensors(KeptTensors&&) noexcept;
  /// Takes over the tensors. The source can then only be destroyed or assigned to.
  KeptTensors& operator=(KeptTensors&&) noexcept;

  /// Keeps tensors. If all ranks that have an element could be lost at once, another member gets a
  /// copy of it: a rank of another replica, on another node if there are several. Collective over
  /// the group; blocks. Cost: one all_reduce of 48 bytes, and the elements that are copied. The
  /// first call of a group, and each call with other tensors, plans and allocates.
  /// @param group  The ranks of the places are its members. Use the group whose members have the
  ///               same part of the model, such as `dp`.
  /// @param step  The step that commit() gets next.
  /// @throws UsageError if a name occurs twice, if a source does not fit its place, or if a place
  /// has partial sums.
  /// @throws MismatchError on all members if they pass different steps, names or places.
  /// @throws LostRanks if ranks are lost. What was kept before is still there.
  void keep(GroupCoordinator& group, std::int64_t step, std::span<const SavedTensor> tensors);
  /// Does the same for a list of tensors in braces.
  void keep(GroupCoordinator& group, std::int64_t step,
            std::initializer_list<SavedTensor> tensors) {
    keep(group, step, std::span{tensors.begin(), tensors.size()});
  }
  /// @cond  These only refuse wrong calls.
  using SavedList = std::initializer_list<SavedTensor>;
  struct OneTensor {
    std::string name;
    const TensorPlacement& place;
    TensorSource source{};
  };
  void keep(GroupCoordinator&, std::int64_t, const OneTensor&) = delete;  // write a list: {{...}}
  void keep(std::int64_t, GroupCoordinator&, SavedList) = delete;         // the group comes first
  template <class Data>
    requires(!std::convertible_to<const Data&, std::span<const SavedTensor>>)
  void keep(GroupCoordinator&, std::int64_t, const Data&) = delete;  // {{"name", place, data}}
  /// @endcond

  /// Restores tensors as they were kept in a step, and keeps them for the members of this group.
  /// Each element comes from a member that has it, this rank itself if possible. Members without
  /// kept tensors receive theirs. Collective over the group; blocks.
  /// @param group  May differ from that of keep().
  /// @param step  The step that all survivors have committed.
  /// @param tensors  All tensors that were kept, in any order. The places may differ.
  /// @return What was moved, between the members of this group.
  /// @throws LostElements on all members if elements are lost with all ranks that had them, or if
  /// no member has kept this step. Members of other groups do not learn of it.
  /// @throws UsageError if a tensor was not kept, if a shape differs, if a type cannot be
  /// converted, or if a target does not fit its place.
  /// @throws MismatchError on all members if they pass different steps, names or places.
  /// @throws LostRanks if more ranks are lost. Call restore() on the mesh after that.
  TransferPlan restore(GroupCoordinator& group, std::int64_t step,
                       std::span<const LoadedTensor> tensors);
  /// Does the same for a list of tensors in braces.
  TransferPlan restore(GroupCoordinator& group, std::int64_t step,
                       std::initializer_list<LoadedTensor> tensors) {
    return restore(group, step, std::span{tensors.begin(), tensors.size()});
  }

  /// Returns the number of bytes that this rank has allocated for both steps. Local.
  [[nodiscard]] std::int64_t bytes() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankmesh::exchange
