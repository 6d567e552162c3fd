// SPDX-License-Identifier: BSD-3-Clause
// Whether a group still exists.
#pragma once

#include <memory>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::detail {

/// Tells the objects that refer to a group whether the group has been destroyed.
struct Lifetime;

/// Belongs to an object that refers to a group, and tells whether the group still exists. It does
/// not keep the group alive. It is moved together with the object to which it belongs.
class RANKMESH_API GroupLife {
 public:
  explicit GroupLife(const GroupCoordinator& group);
  /// Returns false if the group was destroyed, or if this object was moved.
  [[nodiscard]] bool exists() const noexcept;
  /// Throws unless the group exists.
  /// @param object The name of the object that refers to the group, such as "Bucket"; used
  /// in messages.
  /// @throws ClosedError if the group was destroyed; UsageError if the object was moved.
  void require(std::string_view object) const;
  /// Throws the error of an object that was moved.
  [[noreturn]] static void refuse_moved(std::string_view object);

 private:
  std::shared_ptr<const Lifetime> lifetime_;
};

}  // namespace rankmesh::detail
