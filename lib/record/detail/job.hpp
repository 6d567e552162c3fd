// SPDX-License-Identifier: BSD-3-Clause
// The records of a mesh, with the members of each group brought together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "rankmesh/record/record.hpp"

namespace rankmesh::record::detail {

inline constexpr std::size_t none = SIZE_MAX;

/// Lists of ranks that are longer cannot belong to a job whose records fit in memory.
inline constexpr std::int64_t most_ranks = std::int64_t{1} << 22;

/// The collectives of a rank in one of its groups.
struct Member {
  std::size_t node = 0;              ///< Index in Job::nodes.
  std::size_t group = 0;             ///< Index in Record::groups.
  std::int64_t index = -1;           ///< The rank in group, or -1 if it is not known.
  std::uint64_t first = 0;           ///< The number of the first entry of `calls`.
  bool is_complete = false;          ///< The record holds all calls of the rank.
  std::vector<std::uint32_t> calls;  ///< Indices in Record::calls, of consecutive numbers.

  /// Returns the number of the last collective, or nothing if the record does not say.
  [[nodiscard]] std::optional<std::uint64_t> last() const {
    if (!calls.empty()) return first + calls.size() - 1;
    return is_complete ? std::optional<std::uint64_t>{0} : std::nullopt;
  }
};

/// A group, as the records of its members describe it.
struct JobGroup {
  std::int64_t size = 0;
  RankSet ranks;                 ///< Empty if no record lists them.
  std::vector<Member> members;   ///< Those that have a record, in the order of their ranks.
  std::vector<Rank> no_records;  ///< Members without a record, if `ranks` is known.
};

/// All records of a mesh. A node is a rank that has a record; nodes are in the order of the ranks.
class Job {
 public:
  explicit Job(std::span<const Record> records);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const Record& record(std::size_t node) const { return records_[nodes_[node]]; }
  [[nodiscard]] std::size_t record_index(std::size_t node) const { return nodes_[node]; }
  [[nodiscard]] Rank rank(std::size_t node) const { return record(node).rank; }
  [[nodiscard]] const std::vector<JobGroup>& groups() const { return groups_; }
  /// Whether the record of the node holds all of its calls.
  [[nodiscard]] bool is_complete(std::size_t node) const { return is_complete_[node]; }
  /// Returns the node of a rank, or `none`.
  [[nodiscard]] std::size_t find(Rank rank) const;
  /// Returns the index in groups() of a call's group, or `none`.
  [[nodiscard]] std::size_t group_of(std::size_t node, const Call& call) const {
    return call.group < slots_[node].size() ? slots_[node][call.group] : none;
  }
  [[nodiscard]] const Member* member(std::size_t group, std::size_t node) const;
  /// Returns the rank of a member, or nothing if the records do not say.
  [[nodiscard]] std::optional<Rank> rank_of_member(std::size_t group, std::uint64_t index) const;
  [[nodiscard]] const RankSet& missing() const { return missing_; }
  /// Returns the call `number` of a member, or null if the record does not have it.
  [[nodiscard]] const Call* call(const Member& member, std::uint64_t number) const;

 private:
  void add_groups(std::size_t node, std::unordered_map<std::uint64_t, std::size_t>& by_identity);
  void add_calls(std::size_t node);
  void find_missing();

  std::span<const Record> records_;
  std::vector<std::size_t> nodes_;  // indices of records
  std::vector<bool> is_complete_;
  std::vector<std::vector<std::size_t>> slots_;  // of each node: groups of the mesh
  std::vector<JobGroup> groups_;
  RankSet missing_;
};

/// Whether the rank will not make any more calls.
[[nodiscard]] inline bool is_gone(const Record& record) {
  return record.presence != Presence::open || record.process == Process::ended;
}

}  // namespace rankmesh::record::detail
