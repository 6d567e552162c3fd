// SPDX-License-Identifier: BSD-3-Clause
// Copies the values of one member to all members.
#pragma once

#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"

namespace rankmesh {

/// broadcast() copies the root's values to all members. All members must pass the same number of
/// elements. Collective over the group.
template <bool forms_only = false>
class Broadcast : public detail::OperationForms<Operation::broadcast> {
 public:
  /// Copies the values of a buffer.
  template <WritableMemory M>
    requires detail::is_borrowed<M>
  void broadcast(M&& values, RankInGroup root, StreamRef stream = {}) {
    run(values, {.root = root, .stream = stream});
  }
  /// Does the same for a container that is moved into the call and out of it.
  template <HostMemory M>
    requires(!detail::is_borrowed<M> && WritableMemory<M>)
  [[nodiscard]] std::remove_cvref_t<M> broadcast(M&& values, RankInGroup root) {
    broadcast(values, root);
    return std::forward<M>(values);
  }
  /// Does the same for one value, which is changed and returned.
  template <Variable T>
  T broadcast(T& value, RankInGroup root) {
    broadcast(detail::one(value), root);
    return value;
  }
  /// Does the same for a constant. Returns the root's value; the constant does not change.
  template <Value T>
  [[nodiscard]] T broadcast(const T& value, RankInGroup root) {
    T copy = value;
    return broadcast(copy, root);
  }

  /// Starts broadcast(); returns a Work. The memory must stay valid until it is complete.
  template <WritableMemory M>
  [[nodiscard]] WorkOn<M> broadcast_async(M&& values, RankInGroup root, StreamRef stream = {}) {
    return start(std::forward<M>(values), {.root = root, .stream = stream});
  }
  /// Does the same for one value.
  template <Variable T>
  [[nodiscard]] Work broadcast_async(T& value, RankInGroup root) {
    return broadcast_async(detail::one(value), root);
  }

  RANKMESH_REFUSE_OTHERS(Broadcast, broadcast)
};

}  // namespace rankmesh
