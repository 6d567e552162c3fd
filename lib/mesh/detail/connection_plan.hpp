// What the plan of a mesh comes to on one rank: connections, and the steps that create them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"

namespace rankmesh::detail {

/// Pure arithmetic. Every rank has the same number of splits, since a plan decides what must be
/// created; a rank that a split does not serve passes MPI_UNDEFINED.
struct ConnectionPlan {
  /// One MPI_Comm_split of all ranks.
  struct Split {
    std::optional<int> colour;  ///< Nothing: this rank is in no group of it.
    int key = 0;
    std::optional<std::size_t> group;  ///< Whose communicator it makes; index into `groups`.
  };
  /// A coordinator of this rank.
  struct Coordinator {
    std::string name;  ///< Of the family, or `name[key]` for a duplicate.
    std::size_t group;
  };

  std::vector<GroupDescription> groups;  ///< In the order of creation, which is that of freeing.
  std::vector<Split> splits;
  std::vector<Coordinator> coordinators;

  /// @param timeout  Of waits for operations, where a family's options do not say otherwise.
  ConnectionPlan(const MeshPlan& plan, Rank rank, const Placement& placement,
                 Deadline::Duration timeout);

 private:
  void add_family(const MeshPlan& plan, std::size_t family, Rank rank, const Placement& placement,
                  Deadline::Duration timeout);
  void add_duplicates(const MeshPlan& plan, std::size_t family,
                      const std::optional<GroupIndex>& place, std::optional<std::size_t> group,
                      const Placement& placement);
  void add_split(const std::optional<GroupIndex>& place, std::optional<std::size_t> group);
  std::size_t add_group(std::string name, const RankSet& ranks, std::size_t family,
                        const Placement& placement, Deadline::Duration timeout);
};

/// Returns the name of a duplicate communicator: `name[key]`.
std::string duplicate_name(std::string_view name, std::string_view key);

/// Returns the options of the first family that the group belongs to; the default for dynamic
/// groups.
const GroupOptions& options_of(const GroupDescription& group, const MeshPlan& plan);

}  // namespace rankmesh::detail
