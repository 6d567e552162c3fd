// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node exchange values before they share memory.
#pragma once

#include <string>
#include <vector>

#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Returns the ranks of this rank's node, in ascending order.
std::vector<Rank> ranks_of_node(const Placement& placement, Rank self);

/// The ranks of this rank's node. Its functions are collective over the node and block at most
/// until the mesh's timeout. They send messages on the control communicator, between the first rank
/// of the node and each other one, so a node needs no communicator.
/// @throws TimeoutError if ranks are missing; the error names them.
class NodeMembers {
 public:
  NodeMembers(ControlPlane& control, const Placement& placement)
      : control_{control}, ranks_{ranks_of_node(placement, control.rank())} {}

  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  [[nodiscard]] bool is_first() const { return control_.rank() == ranks_.front(); }

  /// Returns the value of the first rank on every rank. `T` is plain data.
  /// @param activity  The activity of the node in messages; the same on all its ranks.
  template <class T>
  T from_first(const T& value, const std::string& activity) {
    MpiMemory<T> memory{value};
    std::vector<MPI_Request> requests;
    if (is_first())
      for (std::size_t r = 1; r < ranks_.size(); ++r)
        send(memory.get(), sizeof(T), ranks_[r], requests);
    else
      receive(memory.get(), sizeof(T), ranks_.front(), requests);
    wait(requests, memory, activity);
    return *memory;
  }

  /// Returns the values of all ranks, in their order, on the first rank; nothing on the others.
  template <class T>
  std::vector<T> to_first(const T& value, const std::string& activity) {
    MpiMemory<std::vector<T>> memory(is_first() ? ranks_.size() : 1, value);
    std::vector<MPI_Request> requests;
    if (is_first())
      for (std::size_t r = 1; r < ranks_.size(); ++r)
        receive(memory->data() + r, sizeof(T), ranks_[r], requests);
    else
      send(memory->data(), sizeof(T), ranks_.front(), requests);
    wait(requests, memory, activity);
    return is_first() ? std::move(*memory) : std::vector<T>{};
  }

 private:
  static constexpr int tag = 2;  // of no other messages on the control communicator

  void send(const void* data, std::size_t bytes, Rank to,
            std::vector<MPI_Request>& requests) const {
    mpi::check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to.value()), tag,
                         control_.comm().native(), &requests.emplace_back()),
               "MPI_Isend");
  }
  void receive(void* data, std::size_t bytes, Rank from, std::vector<MPI_Request>& requests) const {
    mpi::check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(from.value()),
                         tag, control_.comm().native(), &requests.emplace_back()),
               "MPI_Irecv");
  }
  template <class T>
  void wait(std::vector<MPI_Request>& requests, MpiMemory<T>& memory, const std::string& activity) {
    try {
      control_.monitor.wait(requests, WaitPoint::of(RankSet::of(ranks_), activity, activity),
                            control_.deadline());
    } catch (...) {
      memory.leak();  // MPI may still use it
      throw;
    }
  }

  ControlPlane& control_;
  std::vector<Rank> ranks_;
};

}  // namespace rankmesh::detail
