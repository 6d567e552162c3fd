// Where the members of a dynamic group meet before they create it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh::detail {

/// MPI_Comm_create_group blocks for ever where a member does not come, so the members exchange
/// notes first. A note carries (hash of the rank list, how many meetings of this list took place),
/// so notes of other groups, early or late, are told apart.
class Meeting {
 public:
  /// Collective over `members` (ranks of the communicator). Each sends a note of 24 bytes to every
  /// other.
  /// @throws TimeoutError naming the members that did not come.
  /// @returns what names this meeting on all its members, and no other.
  std::string gather(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                     const std::vector<int>& members, const std::string& name,
                     const Deadline& deadline);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // hash of the list, count
  std::map<std::uint64_t, std::uint64_t> uses_;
  std::map<Key, std::set<int>> arrived_;
};

}  // namespace rankmesh::detail
