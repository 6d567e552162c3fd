// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/abort.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/detail/patience.hpp"
#include "rankmesh/device/stream.hpp"

namespace rankmesh::nccl {

// The threads share the state, and may outlive the object.
struct Abort::AbortState {
  struct AbortedCommunicator {
    std::shared_ptr<Communicator::Native> native;
    ncclComm_t handle;
    bool has_ended = false;
  };
  std::mutex mutex;
  std::condition_variable changed;
  bool may_free = false;
  std::deque<AbortedCommunicator> items;  // elements keep their addresses
  // Children of splits that have not got a handle. NCCL may still write it.
  std::vector<std::shared_ptr<Communicator::Native>> children;

  void run(const Library& library, AbortedCommunicator& item, int device) {
    (void)cudaSetDevice(device);  // otherwise NCCL would use device 0 in this thread
    const device::RelaxedCaptureMode relaxed;
    // Inside a group, an abort sets the flags at once and frees at the end of the group (2.22 and
    // later). Outside, it would free what a call still uses.
    (void)library.GroupStart();
    (void)library.CommAbort(item.handle);
    {
      std::unique_lock lock{mutex};
      changed.wait(lock, [&] { return may_free; });
    }
    (void)library.GroupEnd();
    const std::lock_guard lock{mutex};
    item.has_ended = true;
    changed.notify_all();
  }
};

Abort::Abort(std::span<Communicator* const> comms, const std::string& why, Frees frees)
    : state_{std::make_shared<AbortState>()} {
  // Before 2.19, NCCL finds the job that creates a communicator only in the thread that has begun
  // it (ncclGroupJobAbort in src/group.cc). Such a communicator has no operations, so its abort
  // ends.
  constexpr int first_with_jobs_of_communicators = 21900;
  (void)cudaGetDevice(&device_);
  state_->may_free = frees == Frees::at_once;
  for (Communicator* comm : comms) {
    if (!comm->owned_) continue;
    library_ = comm->library_;
    const ncclComm_t handle = comm->take(why);
    if (handle == nullptr) {
      state_->children.push_back(comm->native_);
    } else if (comm->is_in_progress_ && library_->version() < first_with_jobs_of_communicators) {
      (void)library_->CommAbort(handle);
    } else {
      begin(comm->native_, handle);
    }
  }
}

Abort::~Abort() { release(); }

Deadline::Duration Abort::usual_limit() noexcept { return rankmesh::detail::patience().abort; }

void Abort::begin(std::shared_ptr<Communicator::Native> native, ncclComm_t handle) {
  AbortState::AbortedCommunicator* item = nullptr;
  {
    const std::lock_guard lock{state_->mutex};
    item = &state_->items.emplace_back(AbortState::AbortedCommunicator{std::move(native), handle});
  }
  try {
    std::thread{[state = state_, library = library_, item, device = device_] {
      state->run(*library, *item, device);
    }}.detach();
  } catch (const std::exception&) {
    // Without a thread, the communicator is left behind.
  }
}

void Abort::release() noexcept {
  const std::lock_guard lock{state_->mutex};
  state_->may_free = true;
  state_->changed.notify_all();
}

// The abort of a parent joins the thread that splits it, which may have created the child.
void Abort::begin_late_children() {
  for (const auto& child : state_->children) {
    std::unique_lock lock{child->mutex};
    const ncclComm_t handle = std::exchange(child->handle, nullptr);
    lock.unlock();
    if (handle != nullptr) begin(child, handle);
  }
}

std::string Abort::wait(Deadline::Duration limit, const IsInGraphs& is_in_graphs) noexcept {
  release();
  const Deadline deadline{limit};
  std::string left_behind;
  try {
    // CUDA reports the destruction of a graph with a short delay.
    std::set<const AbortState::AbortedCommunicator*> held;
    const auto is_held = [&](const AbortState::AbortedCommunicator& item) {
      return held.contains(&item);
    };
    std::unique_lock lock{state_->mutex};
    const auto wait_for_others = [&](Deadline::Duration most) {
      return state_->changed.wait_for(lock, most, [&] {
        return std::ranges::all_of(state_->items, [&](const AbortState::AbortedCommunicator& item) {
          return item.has_ended || is_held(item);
        });
      });
    };
    if (is_in_graphs &&
        !wait_for_others(std::min(deadline.left(), rankmesh::detail::patience().graph_reports)))
      for (const AbortState::AbortedCommunicator& item : state_->items)
        if (is_in_graphs(item.native->name)) held.insert(&item);
    if (wait_for_others(deadline.left())) {
      lock.unlock();
      begin_late_children();
      lock.lock();
      (void)wait_for_others(deadline.left());
    }
    for (const AbortState::AbortedCommunicator& item : state_->items)
      if (!item.has_ended)
        left_behind += fmt::format(
            "{}'{}' ({})", left_behind.empty() ? "" : ", ", item.native->name,
            is_held(item) ? "until the CUDA graphs that hold its operations are destroyed"
                          : "work that its operations are queued behind does not end");
  } catch (const std::exception&) {
    // There is no memory for the text.
  }
  return left_behind;
}

}  // namespace rankmesh::nccl
