// SPDX-License-Identifier: BSD-3-Clause
// The end of a mesh that is destroyed.
#include "detail/state.hpp"

#include <utility>

#include "base/detail/error_in_flight.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

MeshState::~MeshState() {
  // A child process that was forked must not speak for the rank, whose memory it shares.
  const bool is_rank = ::getpid() == process;
  control->calls_of = nullptr;
  // Another thread may be advancing the operations, which are about to be abandoned.
  const bool is_entered = is_rank && runtime->lock.enter_after_guests();
  if (is_rank) end_on_peers();
  runtime->in_flight.abandon();
  runtime->batch.abandon("the mesh is gone", is_rank);
  if (is_entered) runtime->lock.busy.clear(std::memory_order_release);
  mark_closed();  // because the program may still hold groups
  if (device == nullptr) return;
  if (is_rank) {
    (void)device->abort();
    runtime->device_calls.clear();  // afterwards: CUDA may wait for a thread that waits in CUDA
  } else {
    leak_devices();
  }
}

std::optional<std::uint64_t> MeshState::calls_of(std::uint64_t scope) const {
  for (const auto& connection : connections)
    if (connection->group.key() == scope && !connection->is_closed())
      return connection->last_call();
  return std::nullopt;
}

void MeshState::end_on_peers() {
  // A loss is no mistake of this rank, which goes on: the others learn of the loss, too.
  const bool is_by_loss = control->is_lost() && is_loss_in_flight();
  control->leave_by_destruction(std::uncaught_exceptions() > exceptions && !is_by_loss);
  if (!runtime->is_closed) tell_peers();
}

// CUDA and NCCL cannot be used after fork(), not even to free their objects.
void MeshState::leak_devices() {
  (void)new std::vector<std::shared_ptr<Connection>>{std::move(connections)};
  (void)device.release();
}

// The mesh ends without close(), so the operations of other ranks may never be complete.
void MeshState::tell_peers() const {
  if (control->is_lost()) return;  // all survivors know it
  if (!mpi::is_active()) return;   // all ranks have finalised MPI, or do so now
  std::string why = "left the mesh without close()";
  if (std::uncaught_exceptions() > exceptions) {
    const std::string reason = reason_in_flight();
    why = "left the mesh by an exception" + (reason.empty() ? "" : ": " + reason);
  } else if (!runtime->last_failure.empty()) {
    why += " after an error (" + runtime->last_failure + ")";
  }
  for (const auto& connection : connections) {
    // The program may have freed a communicator that was adopted.
    if (connection->group.is_adopted) continue;
    try {
      connection->guard().leave(why);
    } catch (...) {
      // The other ranks learn less; their deadlines still end their waits.
    }
  }
}

void MeshState::mark_closed() {
  runtime->is_closed = true;
  for (const auto& connection : connections) connection->retire("the mesh is closed");
}

}  // namespace rankmesh::detail
