// SPDX-License-Identifier: BSD-3-Clause
// The time limit of operations on device memory.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device_calls.hpp"
#include "rankmesh/base/deadline.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Finds operations of this rank that have not ended on the device within the option
/// `device_deadline`, and hears from the other ranks of the node what they have found. Each rank
/// publishes the number of the latest collective of each of its groups on the board of the node, so
/// that the error can name members that have not issued the operation.
///
/// Thread safety: note() is called by the thread that uses the mesh, and reason_to_abort() by the
/// thread of the CallWatch.
class DeviceWatch {
 public:
  DeviceWatch(Deadline::Duration limit, std::shared_ptr<ControlPlane> control)
      : limit_{limit}, control_{std::move(control)} {}

  /// Publishes what was issued.
  [[nodiscard]] IssuedOnDevice note(const std::shared_ptr<Connection>& connection,
                                    Operation operation) const;
  /// Returns which operation is stuck, in which group and on which rank, and who is missing; empty
  /// if none is, and after the first text.
  std::string reason_to_abort(DeviceCalls& calls);

 private:
  [[nodiscard]] std::string missing_in(const IssuedOnDevice& stuck) const;

  Deadline::Duration limit_;
  std::shared_ptr<ControlPlane> control_;
  bool has_reported_ = false;
};

}  // namespace rankmesh::detail
