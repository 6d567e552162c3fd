// SPDX-License-Identifier: BSD-3-Clause
#include "detail/control_plane.hpp"

#include <exception>

#include "base/detail/error_in_flight.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

void ControlPlane::leave_by_destruction(bool is_by_exception) noexcept {
  try {
    if (is_by_exception) {
      const std::string error = error_in_flight();
      return leave_by_exception(error.empty() ? "" : "probably " + error);
    }
    if (context_->board && context_->board->is_open()) leave(Presence::destroyed);
  } catch (const std::exception&) {
    // The other ranks learn less; their deadlines still end their waits.
  }
}

void ControlPlane::leave_by_exception(const std::string& reason) noexcept {
  try {
    if (context_->board && !context_->board->is_open()) return;
    // The ranks on other nodes get a message, for which no rank waits. Before there is a board, all
    // ranks get this message.
    if (comm_ && mpi::is_active()) monitor.leave(reason);
    leave(Presence::failed, reason);
  } catch (const std::exception&) {
    // The other ranks learn less; their deadlines still end their waits.
  }
}

}  // namespace rankmesh::detail
