// SPDX-License-Identifier: BSD-3-Clause
#include "detail/everything_in_flight.hpp"

#include <pthread.h>

#include <thread>
#include <utility>

#include "detail/mesh_runtime.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

EverythingInFlight& EverythingInFlight::instance() {
  // It is never destroyed, because meshes may be destroyed after the objects of all files.
  static EverythingInFlight* const everything = new EverythingInFlight;
  return *everything;
}

EverythingInFlight::EverythingInFlight() {
  set_advance([](MeshLock* waiting) { instance().advance(waiting); });
  set_leave_fast_path([] { instance().leave_fast_path(); });
  // A child process may destroy meshes, so no other thread may hold the mutex during the fork.
  ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().mutex_.unlock(); });
}

void EverythingInFlight::add(MeshRuntime& runtime) {
  const std::lock_guard lock{mutex_};
  runtimes_.push_back(&runtime);
  runtime.slow_path.add(polled_);
}

void EverythingInFlight::remove(MeshRuntime& runtime) {
  const std::lock_guard lock{mutex_};
  std::erase(runtimes_, &runtime);
}

void EverythingInFlight::leave_fast_path() {
  const std::lock_guard lock{mutex_};
  for (MeshRuntime* runtime : runtimes_) runtime->slow_path.add();
}

void EverythingInFlight::begin_polled() {
  const std::lock_guard lock{mutex_};
  ++polled_;
  for (MeshRuntime* runtime : runtimes_) runtime->slow_path.add();
}

void EverythingInFlight::end_polled() {
  const std::lock_guard lock{mutex_};
  --polled_;
  for (MeshRuntime* runtime : runtimes_) runtime->slow_path.remove();
}

std::vector<std::shared_ptr<MeshRuntime>> EverythingInFlight::with_polled_of_this_thread() {
  std::vector<std::shared_ptr<MeshRuntime>> runtimes;
  const std::lock_guard lock{mutex_};
  if (polled_ == 0) return runtimes;
  for (MeshRuntime* runtime : runtimes_)
    if (runtime->in_flight.has_polled() && runtime->in_flight.is_of_this_thread())
      // Null if another thread is about to destroy the mesh.
      if (auto shared = runtime->weak_from_this().lock()) runtimes.push_back(std::move(shared));
  return runtimes;
}

// Returns the next mesh of this thread that has operations in flight; null at the end. The mutex is
// not held while operations advance, because they may call functions of the program.
std::shared_ptr<MeshRuntime> EverythingInFlight::next_of_this_thread(std::size_t& place) {
  const std::lock_guard lock{mutex_};
  while (place < runtimes_.size()) {
    MeshRuntime* const runtime = runtimes_[place++];
    // The program may have left its buffers of a mesh that has lost ranks.
    if (runtime->control != nullptr && runtime->control->losses != nullptr &&
        runtime->control->losses->round() != 0)
      continue;
    // A blocking call does not take over the operations of the mesh, but its peers may need them.
    const bool waits_here = runtime->lock.at_poll.load() == std::this_thread::get_id();
    if (waits_here || runtime->in_flight.is_of_this_thread())
      if (auto shared = runtime->weak_from_this().lock()) return shared;
  }
  return nullptr;
}

void EverythingInFlight::advance(MeshLock* waiting) {
  if (unattended_.load(std::memory_order_relaxed) == 0 || !mpi::is_active()) return;
  const AtPoll at_poll{waiting};
  std::size_t place = 0;
  while (const auto runtime = next_of_this_thread(place))
    if (const GuestLock lock{*runtime}; lock.is_held()) runtime->in_flight.advance();
}

}  // namespace rankmesh::detail
