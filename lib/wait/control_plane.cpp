// SPDX-License-Identifier: BSD-3-Clause
#include "detail/control_plane.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "base/detail/error_in_flight.hpp"
#include "detail/wait_messages.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

namespace {

// What waits and failed creations may leave, verdicts among them. Larger messages are those of a
// program with a mistake.
constexpr int most_bytes_of_stray = 4096;
static_assert(sizeof(Verdict) <= most_bytes_of_stray);

void receive_strays(const mpi::CommunicatorView& comm) {
  for (;;) {
    int has_arrived = 0;
    int bytes = 0;
    MPI_Status status;
    mpi::check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm.native(), &has_arrived, &status),
               "MPI_Iprobe");
    if (has_arrived == 0) return;
    mpi::check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes == MPI_UNDEFINED || bytes > most_bytes_of_stray) return;
    std::array<std::byte, most_bytes_of_stray> stray;
    mpi::check(MPI_Recv(stray.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
                        comm.native(), MPI_STATUS_IGNORE),
               "MPI_Recv");
  }
}

}  // namespace

void ControlPlane::move_to(mpi::Communicator own, RankNames own_names) {
  owned_ = std::move(own);
  comm_ = owned_.view();
  names = std::move(own_names);
  monitor = WaitMonitor{comm_, WaitMonitor::Audience::own, names, this};
  monitor.answer_in_other_waits();
}

void ControlPlane::leave_spares(mpi::Communicator members) {
  std::vector<std::int32_t> nodes;
  std::vector<std::int32_t> cores;
  for (std::int64_t rank = 0; rank < members.view().size(); ++rank) {
    nodes.push_back(placement.node(Rank{rank}));
    cores.push_back(placement.cores(nodes.back()).value());
  }
  placement = Placement{nodes, cores};
  with_spares_ = std::move(owned_);
  move_to(std::move(members), names);
}

void ControlPlane::close() {
  monitor.close();
  receive_strays(comm());
  owned_.free();
  with_spares_.free();
  reserve.free();
  comm_ = {};
}

void ControlPlane::leave_by_destruction(bool is_by_exception) noexcept {
  try {
    if (is_by_exception) return leave_by_exception(reason_in_flight());
    if (board_ && board_->is_open()) leave(Presence::destroyed);
  } catch (const std::exception&) {
    // The other ranks learn less; their deadlines still end their waits.
  }
}

void ControlPlane::leave_by_exception(const std::string& reason) noexcept {
  try {
    if (board_ && !board_->is_open()) return;
    leave(Presence::failed, reason);
    if (losses != nullptr) losses->fail();
    // The ranks on other nodes get a message, for which no rank waits. Before there is a board, all
    // ranks get this message.
    if (owned_ && mpi::is_active()) monitor.leave(reason);
  } catch (const std::exception&) {
    // The other ranks learn less; their deadlines still end their waits.
  }
}

}  // namespace rankmesh::detail
