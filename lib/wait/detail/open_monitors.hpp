// SPDX-License-Identifier: BSD-3-Clause
// The wait monitors of all meshes of this process.
#pragma once

#include <mutex>
#include <vector>

namespace rankmesh {
struct WaitPoint;
}

namespace rankmesh::detail {

struct MonitorState;

/// Lists the monitors whose questions every wait of this process answers. While the rank is in one
/// wait, it cannot begin the waits of the other monitors.
///
/// Thread safety: any thread may call any function. With MPI_THREAD_MULTIPLE the list is empty.
class OpenMonitors {
 public:
  static OpenMonitors& instance();

  void add(MonitorState& monitor);
  /// Does nothing if the monitor is not in the list.
  void remove(const MonitorState& monitor);
  /// Answers the questions that have arrived at any monitor except `waiting`.
  /// @param waiting  The monitor in which this rank waits.
  /// @param point    The point at which this rank waits.
  void answer(const MonitorState& waiting, const WaitPoint& point);

 private:
  std::mutex mutex_;
  std::vector<MonitorState*> monitors_;
};

}  // namespace rankmesh::detail
