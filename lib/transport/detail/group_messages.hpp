// SPDX-License-Identifier: BSD-3-Clause
// The messages of the guards of groups that share a communicator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "rankmesh/mpi/communicator.hpp"
#include "wait/detail/small_messages.hpp"

namespace rankmesh::detail {

/// Receives the next message of one group, if one has arrived. Another group on the communicator,
/// also one of another mesh, may have the same tag (see GroupKey). Its messages are set aside until
/// it asks for them.
/// @param mark  The group's, with which each of its messages begins.
template <class Message>
std::optional<Received<Message>> receive_of_group(const mpi::CommunicatorView& comm, int tag,
                                                  std::uint64_t mark) {
  struct Aside {
    MPI_Comm comm;
    Received<Message> received;
  };
  struct All {
    std::mutex mutex;
    std::deque<Aside> list;
  };
  // Nobody asks for the messages of groups that have ended, so there is a limit.
  constexpr std::size_t most = 1024;
  static auto* const all = new All;  // meshes may be destroyed after the objects of all files
  const std::lock_guard lock{all->mutex};
  const auto mine = std::ranges::find_if(all->list, [&](const Aside& aside) {
    return aside.comm == comm.native() && aside.received.message.mark == mark;
  });
  if (mine != all->list.end()) {
    const Received<Message> received = mine->received;
    all->list.erase(mine);
    return received;
  }
  while (const auto received = receive_if_arrived<Message>(comm, tag)) {
    if (received->message.mark == mark) return received;
    all->list.push_back({comm.native(), *received});
    if (all->list.size() > most) all->list.pop_front();
  }
  return std::nullopt;
}

}  // namespace rankmesh::detail
