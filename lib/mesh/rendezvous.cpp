// SPDX-License-Identifier: BSD-3-Clause
#include "detail/rendezvous.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/send_and_forget.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;
constexpr int note_tag = 32764;
enum class Kind : std::uint64_t { arrived, withdrawn };
using Note = std::array<std::uint64_t, 3>;  // hash, count, kind

void send_notes(const mpi::CommunicatorView& comm, const std::vector<int>& members,
                std::uint64_t list, std::uint64_t count, Kind kind) {
  const Note note{list, count, static_cast<std::uint64_t>(kind)};
  for (const int member : members)
    if (member != comm.rank()) send_and_forget(comm, member, note_tag, note);
}

}  // namespace

// Receives all notes that have arrived. Returns the members that take part in this rendezvous.
std::set<int>& Rendezvous::receive_notes(const mpi::CommunicatorView& comm, const Key& key) {
  while (true) {
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, note_tag, comm.native(), &there, &status), "MPI_Iprobe");
    if (there == 0) return arrived_[key];
    Note note;
    check(MPI_Recv(note.data(), sizeof note, MPI_BYTE, status.MPI_SOURCE, note_tag, comm.native(),
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    auto& arrived = arrived_[{note[0], note[1]}];
    if (note[2] == static_cast<std::uint64_t>(Kind::arrived))
      arrived.insert(status.MPI_SOURCE);
    else
      arrived.erase(status.MPI_SOURCE);
  }
}

std::string Rendezvous::join(ControlPlane& control, const std::vector<int>& members,
                             const std::string& activity) {
  const mpi::CommunicatorView& comm = control.comm();
  const std::uint64_t list = hash_bytes(fmt::format("{}", fmt::join(members, ","))).low;
  // The count increases only after success, so after a failure all members use the same key again.
  const Key key{list, uses_[list]};
  send_notes(comm, members, key.first, key.second, Kind::arrived);
  WaitPoint point =
      WaitPoint::of(members, activity, fmt::format("rendezvous {} {}", key.first, key.second));
  point.may_repeat = true;
  try {
    control.monitor.wait([&] { return receive_notes(comm, key).size() + 1 == members.size(); },
                         point, control.deadline());
  } catch (const TimeoutError&) {
    // Tells late members that this rank no longer takes part.
    send_notes(comm, members, key.first, key.second, Kind::withdrawn);
    throw;
  }
  arrived_.erase(key);
  ++uses_[list];
  return fmt::format("rendezvous {:x} {}", key.first, key.second);
}

}  // namespace rankmesh::detail
