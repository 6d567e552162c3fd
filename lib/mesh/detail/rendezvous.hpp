// Where the members of a dynamic group wait for each other before they create it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// MPI_Comm_create_group blocks for ever if a member does not come, so the members exchange notes
/// first. A note carries the hash of the rank list and the number of earlier rendezvous of this
/// list, so notes of other groups, early or late, are told apart.
///
/// Detection is best effort: a rank that stops between the rendezvous and the creation still blocks
/// its peers.
class Rendezvous {
 public:
  /// Waits for the other members. Collective over `members` (ranks of the mesh), each of which
  /// sends a note of 24 bytes to every other.
  /// @return The identity of this rendezvous, the same on all its members and of no other.
  /// @throws TimeoutError naming the members that did not come.
  std::string join(ControlPlane& control, const std::vector<int>& members,
                   const std::string& activity);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // hash of the list, count
  [[nodiscard]] std::set<int>& receive_notes(const mpi::CommunicatorView& comm, const Key& key);

  std::map<std::uint64_t, std::uint64_t> uses_;
  std::map<Key, std::set<int>> arrived_;
};

}  // namespace rankmesh::detail
