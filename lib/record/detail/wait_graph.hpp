// SPDX-License-Identifier: BSD-3-Clause
// Which ranks wait for which other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "record/detail/job.hpp"
#include "record/detail/messages.hpp"
#include "record/diagnosis.hpp"

namespace rankmesh::record::detail {

/// The ranks that must act before the ranks that wait at this point can continue. All ranks that
/// wait in the same call for the same members share a point.
struct WaitPoint {
  std::vector<std::size_t> certain;   ///< All of these nodes are needed.
  std::vector<std::size_t> possible;  ///< At least one of them is probably needed.
  std::vector<std::size_t> halted;    ///< Nodes that have made the call but cannot carry it out.
  std::vector<Rank> no_records;       ///< Ranks that may be needed, but have no record.
  /// Whether at least one node of `possible` is needed by a rank that waits for a long time.
  bool is_complete = true;
  /// Whether the ranks wait until all of them have arrived, but not in a numbered call of a group.
  /// In this case, a rank that is not at the point may have been there before.
  bool is_meeting = false;
  /// The records do not say what the needed ranks did after this time.
  Time valid_until = std::numeric_limits<Time>::min();

  [[nodiscard]] const std::vector<std::size_t>& needed() const {
    return certain.empty() ? possible : certain;
  }
  /// Returns whether no rank is known for which a rank could wait at this point.
  [[nodiscard]] bool is_empty() const {
    return needed().empty() && halted.empty() && no_records.empty();
  }
};

/// A wait of this length is unlikely to end by itself.
inline constexpr Time long_wait = 1'000'000'000;

/// What a node does.
struct NodeState {
  Activity activity = Activity::outside;
  std::size_t call = none;      ///< As RankActivity::call.
  std::size_t point = none;     ///< Index in WaitGraph::points, or `none` if it waits for no other
                                ///< rank.
  bool is_certain = false;      ///< It needs all nodes of WaitPoint::needed().
  bool is_old = false;          ///< The wait began after the records of the others had been read.
  bool differs = false;         ///< Its call differs from the calls of other members.
  std::optional<Time> since{};  ///< When its wait began; empty if no time was taken.
};

class WaitGraph {
 public:
  /// @param differing  for each group of the job, the number of the first collective in which
  /// members differ, or 0.
  WaitGraph(const Job& job, const Messages& messages, const std::vector<std::uint64_t>& differing);

  std::vector<NodeState> nodes;
  std::vector<WaitPoint> points;

  /// Returns the nodes for which a node waits, including halted nodes, in ascending order.
  [[nodiscard]] std::vector<std::size_t> needed_by(std::size_t node) const;
  /// Returns whether the process of a node is stopped, or has ended, while other processes
  /// continue.
  [[nodiscard]] bool is_halted(std::size_t node) const;
  /// Returns the sets of nodes in which every node waits for every other node, directly or through
  /// other nodes.
  /// @param only_certain  follow certain waits only.
  [[nodiscard]] std::vector<std::vector<std::size_t>> circles(bool only_certain) const;
  /// Returns the shortest circle of waits through a node, in their order.
  [[nodiscard]] std::vector<std::size_t> circle_through(std::size_t node, bool only_certain) const;

  /// Returns the points at which nodes need this node.
  [[nodiscard]] const std::vector<std::size_t>& points_for(std::size_t node) const {
    return points_for_[node];
  }

  struct Waiters {
    std::vector<std::size_t> nodes;  ///< Nearest first.
    std::vector<std::size_t> next;   ///< Of each of `nodes`: the node for which it waits.
  };
  /// Returns the nodes that wait for some of the given nodes, directly or through others. Old waits
  /// are left out.
  [[nodiscard]] Waiters waiters_of(const std::vector<std::size_t>& needed) const;

 private:
  enum class Role : std::uint8_t { needs_all, may_need_all, needs_root, needs_earlier };
  void find_state(std::size_t node);
  void find_point(std::size_t node);
  void judge(std::size_t node);
  std::size_t point_of_collective(std::size_t node, const Call& call);
  std::size_t point_of_message(std::size_t node, std::size_t call);
  std::size_t point_of_wait(const Wait& wait);
  WaitPoint collective_point(std::size_t group, std::uint64_t number, Role role,
                             std::uint64_t root) const;
  void add_member(WaitPoint& point, const Member& member, std::uint64_t number,
                  bool is_needed) const;
  void add_idle_members(WaitPoint& point, std::size_t group, std::uint64_t number) const;
  /// Returns until when the record says what its rank did.
  [[nodiscard]] Time valid_until(const Record& record) const;
  void finish(WaitPoint& point) const;

  const Job& job_;
  const Messages& messages_;
  bool are_all_halted_ = false;                        // every process is stopped or has ended
  Time last_read_ = std::numeric_limits<Time>::min();  // the latest Record::read_at
  std::map<std::tuple<std::size_t, std::uint64_t, Role, std::uint64_t>, std::size_t> collectives_;
  // The points by Wait::point and Wait::ranks: the members of a redistribution wait for different
  // ranks.
  std::map<std::pair<std::uint64_t, std::string>, std::size_t> meetings_;
  std::vector<std::vector<std::size_t>> waiting_at_;  // of each point: its nodes, without old waits
  std::vector<std::vector<std::size_t>> points_for_;  // of each node: the points that need it
};

}  // namespace rankmesh::record::detail
