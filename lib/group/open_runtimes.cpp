// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_runtimes.hpp"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "detail/mesh_runtime.hpp"
#include "wait/detail/progress_in_waits.hpp"

namespace rankmesh::detail {

OpenRuntimes& OpenRuntimes::instance() {
  // It is never destroyed, because meshes may be destroyed after the objects of all files.
  static OpenRuntimes* const runtimes = new OpenRuntimes;
  return *runtimes;
}

OpenRuntimes::OpenRuntimes() {
  set_progress_in_waits([] { instance().advance(); });
  // A child process may destroy meshes, so no other thread may hold the mutex during the fork.
  ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().mutex_.unlock(); });
}

void OpenRuntimes::add(MeshRuntime& runtime) {
  const std::lock_guard lock{mutex_};
  runtimes_.push_back(&runtime);
  runtime.slow_path.add(polled_);
}

void OpenRuntimes::remove(MeshRuntime& runtime) {
  const std::lock_guard lock{mutex_};
  std::erase(runtimes_, &runtime);
}

void OpenRuntimes::begin_polled() {
  const std::lock_guard lock{mutex_};
  ++polled_;
  for (MeshRuntime* runtime : runtimes_) runtime->slow_path.add();
}

void OpenRuntimes::end_polled() {
  const std::lock_guard lock{mutex_};
  --polled_;
  for (MeshRuntime* runtime : runtimes_) runtime->slow_path.remove();
}

std::vector<std::shared_ptr<MeshRuntime>> OpenRuntimes::with_polled_of_this_thread() {
  std::vector<std::shared_ptr<MeshRuntime>> runtimes;
  const std::lock_guard lock{mutex_};
  if (polled_ == 0) return runtimes;
  for (MeshRuntime* runtime : runtimes_)
    if (runtime->in_flight.has_polled_of_this_thread())
      // Null if another thread is about to destroy the mesh.
      if (auto shared = runtime->weak_from_this().lock()) runtimes.push_back(std::move(shared));
  return runtimes;
}

bool OpenRuntimes::has_polled() {
  const std::lock_guard lock{mutex_};
  return std::ranges::any_of(runtimes_, [](const MeshRuntime* runtime) {
    return runtime->in_flight.has_polled_of_this_thread();
  });
}

void OpenRuntimes::advance() {
  for (const auto& runtime : with_polled_of_this_thread()) {
    std::optional<GuestLock> lock;
    if (runtime->closing_thread.load() != std::this_thread::get_id()) lock.emplace(*runtime);
    if (!lock || lock->is_held()) runtime->in_flight.advance_polled();
  }
}

void OpenRuntimes::finish_polled() {
  for (const auto& runtime : with_polled_of_this_thread())
    if (const GuestLock lock{*runtime}; lock.is_held())
      runtime->in_flight.finish_polled(runtime->control->monitor);
}

}  // namespace rankmesh::detail
