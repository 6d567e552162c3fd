// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_monitors.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "detail/monitor_state.hpp"
#include "detail/wait_messages.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::detail {
namespace {

// Returns the wait for the members of another mesh. No wait of these members has its key.
WaitPoint seen_from_another_mesh(const WaitPoint& point) {
  std::string activity =
      point.activity.substr(0, sizeof Note::activity - 1 - record::in_another_mesh.size());
  return {.key = 0, .activity = activity.append(record::in_another_mesh)};
}

}  // namespace

OpenMonitors& OpenMonitors::instance() {
  // It is never destroyed, because meshes may be destroyed after the objects of all files.
  static OpenMonitors* const monitors = new OpenMonitors;
  return *monitors;
}

void OpenMonitors::add(MonitorState& monitor) {
  int level = MPI_THREAD_MULTIPLE;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) return;
  const std::lock_guard lock{mutex_};
  monitors_.push_back(&monitor);
}

void OpenMonitors::remove(const MonitorState& monitor) {
  const std::lock_guard lock{mutex_};
  std::erase(monitors_, &monitor);
}

void OpenMonitors::answer(const MonitorState& waiting, const WaitPoint& point) {
  const std::lock_guard lock{mutex_};
  for (MonitorState* monitor : monitors_)
    if (monitor != &waiting) monitor->answer(seen_from_another_mesh(point));
}

}  // namespace rankmesh::detail
