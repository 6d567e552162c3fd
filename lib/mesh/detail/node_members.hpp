// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node exchange values before they share memory.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/layout/placement.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/mpi/members.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Returns the ranks of this rank's node, in ascending order.
std::vector<Rank> ranks_of_node(const Placement& placement, Rank self);

/// The ranks of this rank's node, or those of a group inside it. Its functions are collective over
/// these ranks and block at most until the mesh's timeout. They send messages between the first
/// rank and each other one, and need no communicator of these ranks.
/// @throws TimeoutError if ranks are missing; the error names them.
class NodeMembers {
 public:
  /// Takes the ranks of this node, in ascending order. They send messages on the control
  /// communicator.
  NodeMembers(ControlPlane& control, const Placement& placement)
      : NodeMembers{control, ranks_of_node(placement, control.rank())} {}
  /// Takes the members of a group inside the node, in group order.
  /// @param identity  The same on all members; unique among groups.
  NodeMembers(ControlPlane& control, mpi::Members members, RankSet ranks, std::string identity)
      : control_{control},
        members_{std::move(members)},
        ranks_{std::move(ranks)},
        identity_{std::move(identity)} {}

  [[nodiscard]] int size() const { return members_.size(); }
  [[nodiscard]] bool is_first() const { return members_.rank() == 0; }

  /// Returns the value of the first rank on every rank. `T` is plain data.
  /// @param activity  The activity of the node in messages; the same on all its ranks.
  template <class T>
  T from_first(const T& value, const std::string& activity) {
    MpiMemory<T> memory{value};
    std::vector<MPI_Request> requests;
    if (is_first())
      for (int member = 1; member < size(); ++member)
        send(memory.get(), sizeof(T), member, requests);
    else
      receive(memory.get(), sizeof(T), 0, requests);
    wait(requests, memory, activity, !is_first());
    return *memory;
  }

  /// Returns the values of all ranks, in their order, on the first rank; nothing on the others.
  template <class T>
  std::vector<T> to_first(const T& value, const std::string& activity) {
    MpiMemory<std::vector<T>> memory(is_first() ? static_cast<std::size_t>(size()) : 1, value);
    std::vector<MPI_Request> requests;
    if (is_first())
      for (int member = 1; member < size(); ++member)
        receive(memory->data() + member, sizeof(T), member, requests);
    else
      send(memory->data(), sizeof(T), 0, requests);
    wait(requests, memory, activity, false);
    return is_first() ? std::move(*memory) : std::vector<T>{};
  }

 private:
  static constexpr int tag = 2;  // of no other messages on the control communicator

  NodeMembers(ControlPlane& control, const std::vector<Rank>& ranks)
      : control_{control}, ranks_{RankSet::of(ranks)} {
    std::vector<int> of_mesh;
    for (const Rank rank : ranks) of_mesh.push_back(static_cast<int>(rank.value()));
    const auto self = std::ranges::find(ranks, control.rank()) - ranks.begin();
    members_ = {control.comm(), std::move(of_mesh), static_cast<int>(self), 0};
  }
  void send(const void* data, std::size_t bytes, int to, std::vector<MPI_Request>& requests) const {
    mpi::check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, members_.rank_of(to),
                         members_.tag_of(tag), members_.comm().native(), &requests.emplace_back()),
               "MPI_Isend");
  }
  void receive(void* data, std::size_t bytes, int from, std::vector<MPI_Request>& requests) const {
    mpi::check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, members_.rank_of(from),
                         members_.tag_of(tag), members_.comm().native(), &requests.emplace_back()),
               "MPI_Irecv");
  }
  template <class T>
  void wait(std::vector<MPI_Request>& requests, MpiMemory<T>& memory, const std::string& activity,
            bool is_receive_from_first) {
    // The name of a group in the activity may differ between its members.
    const std::string key = identity_.empty() ? activity : "shared memory of " + identity_;
    try {
      control_.monitor.wait(requests, WaitPoint::of(ranks_, activity, key), control_.deadline());
    } catch (...) {
      // No message comes after the first rank has given up. A receive that stayed in MPI could take
      // one of a later mesh, because MPICH gives its communicator the same number.
      if (is_receive_from_first && requests.back() != MPI_REQUEST_NULL)
        MPI_Cancel(&requests.back());
      memory.leak();  // MPI may still use it
      throw;
    }
  }

  ControlPlane& control_;
  mpi::Members members_;
  RankSet ranks_;
  std::string identity_;  // empty: the ranks of the node
};

}  // namespace rankmesh::detail
