// SPDX-License-Identifier: BSD-3-Clause
#include "detail/control_plane.hpp"

#include <exception>

#include "base/detail/error_in_flight.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

void ControlPlane::leave_by_destruction(bool is_by_exception) noexcept {
  try {
    if (!context_->board || !context_->board->is_open()) return;
    if (!is_by_exception) return leave(Presence::destroyed);
    // The ranks on other nodes get a message, which nobody waits for.
    if (comm_ && mpi::is_active()) monitor.leave(error_in_flight());
    leave(Presence::failed, error_in_flight());
  } catch (const std::exception&) {
    // The other ranks learn less; their deadlines still end their waits.
  }
}

}  // namespace rankmesh::detail
