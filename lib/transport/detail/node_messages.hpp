// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node exchange values before they share memory.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "own_tags.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Returns the ranks of this rank's node, in ascending order.
std::vector<Rank> ranks_of_node(const ControlPlane& control);

/// Messages between the first rank of this rank's node and each other one, or between the first
/// member of a group inside the node and each other one. The functions are collective over these
/// ranks and block at most until the mesh's timeout.
/// @throws TimeoutError if ranks are missing; the error names them.
class NodeMessages {
 public:
  /// Takes the ranks of this node, in ascending order. They send messages on the control
  /// communicator.
  explicit NodeMessages(ControlPlane& control) : NodeMessages{control, ranks_of_node(control)} {}
  /// Takes the members of a group inside the node, who send messages on its communicator.
  /// @param identity  The same on all members; unique among groups.
  NodeMessages(ControlPlane& control, const mpi::CommunicatorView& comm, RankSet ranks,
               std::string identity)
      : control_{control},
        comm_{comm},
        members_(static_cast<std::size_t>(comm.size())),
        ranks_{std::move(ranks)},
        identity_{std::move(identity)} {
    std::iota(members_.begin(), members_.end(), 0);
  }

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] bool is_first() const { return comm_.rank() == members_.front(); }

  /// Returns the value of the first rank on every rank. `T` is plain data.
  /// @param activity  The activity of the node in messages; the same on all its ranks.
  template <class T>
  T from_first(const T& value, const std::string& activity) {
    if (!is_first()) {
      control_.monitor.wait([&] { return is_told(); }, point(activity), control_.deadline());
      return receive<T>(members_.front()).second;
    }
    send(value, std::span{members_}.subspan(1), activity);
    return value;
  }

  /// Sends a value to the first rank, which receives it with told_by_any(). Not for the first rank.
  template <class T>
  void tell_first(const T& value, const std::string& activity) {
    send(value, std::span{members_}.first(1), activity);
  }

  /// Receives a value on the first rank after wait_unless_told() has returned false. Returns the
  /// index of the sender, too. Does not block.
  template <class T>
  std::pair<int, T> told_by_any() {
    const auto [source, value] = receive<T>(MPI_ANY_SOURCE);
    return {static_cast<int>(std::ranges::find(members_, source) - members_.begin()), value};
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
    const WaitPoint here = point(activity);
    control_.monitor.wait(is_over, here, control_.deadline());
    // A rank that has given up may have done its part before.
    if (is_done) control_.monitor.require_not_given_up(here);
    return is_done;
  }

 private:
  static constexpr int tag = node_tag;

  NodeMessages(ControlPlane& control, const std::vector<Rank>& ranks)
      : control_{control}, comm_{control.comm()}, ranks_{RankSet::of(ranks)} {
    for (const Rank rank : ranks) members_.push_back(static_cast<int>(rank.value()));
  }
  template <class T>
  void send(const T& value, std::span<const int> to, const std::string& activity) {
    MpiMemory<T> memory{value};
    std::vector<MPI_Request> requests;
    for (const int member : to)
      mpi::check(MPI_Isend(memory.get(), sizeof(T), MPI_BYTE, member, tag, comm_.native(),
                           &requests.emplace_back()),
                 "MPI_Isend");
    try {
      control_.monitor.wait(requests, point(activity), control_.deadline());
    } catch (...) {
      memory.leak();  // MPI may still use it
      throw;
    }
  }
  // Receives a message that has arrived, and returns its source. Receives that wait in MPI might
  // stay there after an error, and take a message of a later mesh: MPICH gives its communicator the
  // same number.
  template <class T>
  std::pair<int, T> receive(int source) const {
    T value;
    MPI_Status status;
    mpi::check(MPI_Recv(&value, sizeof(T), MPI_BYTE, source, tag, comm_.native(), &status),
               "MPI_Recv");
    return {status.MPI_SOURCE, value};
  }
  [[nodiscard]] bool is_told() const {
    int has_arrived = 0;
    mpi::check(MPI_Iprobe(is_first() ? MPI_ANY_SOURCE : members_.front(), tag, comm_.native(),
                          &has_arrived, MPI_STATUS_IGNORE),
               "MPI_Iprobe");
    return has_arrived != 0;
  }
  [[nodiscard]] WaitPoint point(const std::string& activity) const {
    // The name of a group in the activity may differ between its members.
    return WaitPoint::of(ranks_, activity,
                         identity_.empty() ? activity : "shared memory of " + identity_);
  }
  ControlPlane& control_;
  mpi::CommunicatorView comm_;
  std::vector<int> members_;  // ranks in the communicator
  RankSet ranks_;
  std::string identity_;  // empty: the ranks of the node
};

}  // namespace rankmesh::detail
