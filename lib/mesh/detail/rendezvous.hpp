// SPDX-License-Identifier: BSD-3-Clause
// Makes the members of a dynamic group wait for each other before they create it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Waits until all members of a dynamic group are ready to create it. MPI_Comm_create_group blocks
/// for ever if a member is missing, so the members exchange notes first. A note has the hash of the
/// rank list and the number of earlier rendezvous of this list, which distinguish it from the notes
/// of other groups and of other attempts.
///
/// Detection is best effort: a rank that stops between the rendezvous and the creation
/// still blocks its peers.
class Rendezvous {
 public:
  /// Waits for the other members. Collective over `members` (ranks of the mesh); blocks. Each
  /// member sends a note of 24 bytes to every other one.
  /// @return The identity of this rendezvous: the same on all members, and unique in the mesh.
  /// @throws TimeoutError  Some members did not take part; it names them.
  std::string join(ControlPlane& control, const std::vector<int>& members,
                   const std::string& activity);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // hash of the list, count
  [[nodiscard]] std::set<int>& receive_notes(const mpi::CommunicatorView& comm, const Key& key);

  std::map<std::uint64_t, std::uint64_t> uses_;
  std::map<Key, std::set<int>> arrived_;
};

}  // namespace rankmesh::detail
