// SPDX-License-Identifier: BSD-3-Clause
// Options for the communicators of one family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// Options for the communicators of one family. They must be the same on every rank. All except
/// `duplicates`, `priority` and `timeout` concern device memory and have no effect without devices.
/// NCCL chooses the value of an option that is not set, and ignores options that the loaded version
/// does not know.
struct GroupOptions {
  /// The family whose NCCL communicators are split (`ncclCommSplit`), instead of making unique IDs.
  /// Every group must lie inside one group of that family. A split costs a ring all-gather over the
  /// parent. Empty: make unique IDs.
  std::string split_from{};
  /// With `split_from`: share the buffers and channels of the parent, which saves memory.
  /// Communicators that share run one at a time, and an abort of one can end all of them. NCCL
  /// reads this option from the parent: if one child shares, all children of that parent do.
  bool share_resources = false;
  /// A group of more ranks is created with several unique IDs, one per this many ranks
  /// (`ncclCommInitRankScalable`, NCCL 2.23; older versions use one ID). 0: always one ID.
  std::int64_t ranks_per_id = 128;
  /// Create the NCCL communicators in Mesh::open() instead of together with the mesh.
  bool lazy = false;
  /// Let NCCL calls block instead of polling them with a deadline.
  bool blocking = false;
  /// CUDA priority of the stream of the group (GroupCoordinator::stream()): lower numbers run
  /// first. In an NcclGroup, operations of families with lower numbers are issued first.
  int priority = 0;
  std::optional<int> min_ctas{};  ///< fewest thread blocks per operation
  std::optional<int> max_ctas{};  ///< most thread blocks per operation; fewer need less memory
  std::optional<int> cga_cluster_size{};  ///< 0 to 8; see NCCL
  std::optional<int> traffic_class{};     ///< traffic class of the network (NCCL 2.26)
  /// Timeout in seconds of waits for operations of this family: Work::wait, waits for streams, and
  /// NCCL calls that are in progress. Not set: the timeout of the mesh.
  std::optional<int> timeout{};
  /// Keys of further communicators of the same groups, for work on other
  /// streams: Mesh::duplicate().
  std::vector<std::string> duplicates{};

  /// Returns whether equal groups of two families with these options can share one communicator.
  [[nodiscard]] RANKMESH_API bool can_share(const GroupOptions& other) const;
  /// Returns the options that differ from the default, for example `ranks_per_id=4,lazy`.
  [[nodiscard]] RANKMESH_API std::string to_string() const;
  friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

}  // namespace rankmesh
