// SPDX-License-Identifier: BSD-3-Clause
// The time limit of operations on device memory.
#pragma once

#include <cstddef>
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
/// publishes on the board of the node the number of the latest collective of each of its groups,
/// and its oldest operation that has not ended. So any rank can tell which members have not issued
/// an operation, and which of the other operations the members wait behind.
///
/// Thread safety: reason_to_abort() is called by the thread of the CallWatch, and the others by the
/// thread that uses the mesh.
class DeviceWatch {
 public:
  DeviceWatch(Deadline::Duration limit, std::shared_ptr<ControlPlane> control)
      : limit_{limit}, control_{std::move(control)} {}

  /// Takes a place on the board for the calls of a group that is opened. If the board has none
  /// left, its missing ranks are not known. Does nothing if the group has one.
  void open(Connection& connection);
  /// Gives the place back when the group is closed. Its calls have ended.
  void close(Connection& connection, DeviceCalls& calls);

  /// Publishes what was issued.
  [[nodiscard]] IssuedOnDevice note(const std::shared_ptr<Connection>& connection,
                                    Operation operation) const;
  /// Returns which operation is stuck, in which group and on which rank, and who is missing; empty
  /// if none is, and after the first text.
  std::string reason_to_abort(DeviceCalls& calls);

 private:
  [[nodiscard]] std::string missing_in(const IssuedOnDevice& stuck) const;
  [[nodiscard]] std::string waits_behind(const std::vector<std::size_t>& slots) const;

  Deadline::Duration limit_;
  std::shared_ptr<ControlPlane> control_;
  bool has_reported_ = false;
};

}  // namespace rankmesh::detail
