// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node exchange values before they share memory.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
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

  /// Sends a value to the first rank, which receives it with told_by_any(). Not for the first rank.
  template <class T>
  void tell_first(const T& value, const std::string& activity) {
    MpiMemory<T> memory{value};
    std::vector<MPI_Request> requests;
    send(memory.get(), sizeof(T), ranks_.front(), requests);
    wait(requests, memory, activity);
  }

  /// Receives a value on the first rank. Returns the place of the sender among the ranks, too.
  template <class T>
  std::pair<int, T> told_by_any(const std::string& activity) {
    MpiMemory<T> memory;
    MPI_Status status;
    mpi::check(MPI_Probe(MPI_ANY_SOURCE, tag, control_.comm().native(), &status), "MPI_Probe");
    const Rank from{status.MPI_SOURCE};
    std::vector<MPI_Request> requests;
    receive(memory.get(), sizeof(T), from, requests);
    wait(requests, memory, activity);
    return {static_cast<int>(std::ranges::find(ranks_, from) - ranks_.begin()), *memory};
  }

  /// Waits until the function returns true, which it does on all ranks if it does on one. Then
  /// returns true. Returns false if a message for this rank arrives instead: on the first rank from
  /// tell_first(), on another rank from from_first().
  bool wait_unless_told(const std::function<bool()>& done, const std::string& activity) {
    bool is_done = false;
    const auto is_over = [&] {
      is_done = done();
      if (is_done || !is_told()) return is_done;
      // A sender that has seen that all are done may already send what follows.
      is_done = done();
      return true;
    };
    control_.monitor.wait(is_over, point(activity), control_.deadline());
    return is_done;
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
  [[nodiscard]] bool is_told() const {
    int has_arrived = 0;
    mpi::check(MPI_Iprobe(is_first() ? MPI_ANY_SOURCE : static_cast<int>(ranks_.front().value()),
                          tag, control_.comm().native(), &has_arrived, MPI_STATUS_IGNORE),
               "MPI_Iprobe");
    return has_arrived != 0;
  }
  [[nodiscard]] WaitPoint point(const std::string& activity) const {
    return WaitPoint::of(RankSet::of(ranks_), activity, activity);
  }
  template <class T>
  void wait(std::vector<MPI_Request>& requests, MpiMemory<T>& memory, const std::string& activity) {
    try {
      control_.monitor.wait(requests, point(activity), control_.deadline());
    } catch (...) {
      memory.leak();  // MPI may still use it
      throw;
    }
  }

  ControlPlane& control_;
  std::vector<Rank> ranks_;
};

}  // namespace rankmesh::detail
