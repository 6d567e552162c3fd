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
  /// The parent family: its NCCL communicators are split (`ncclCommSplit`) to create the
  /// communicators of this family without unique IDs. Every group must lie inside one group of the
  /// parent family. A split costs a ring all-gather over the parent. If the name is empty, unique
  /// IDs are made.
  std::string split_from{};
  /// With `split_from`, the communicators share the buffers and channels of the parent, which saves
  /// memory. Communicators that share resources run one at a time, and an abort of one communicator
  /// can end all of them. NCCL reads this option from the parent: if one child shares resources,
  /// all children of that parent share them.
  bool share_resources = false;
  /// The number of ranks per unique ID. A group of more ranks is created with several unique IDs
  /// (`ncclCommInitRankScalable`, NCCL 2.23; older versions use one ID). The value 0 means that
  /// every group uses one ID.
  std::int64_t ranks_per_id = 128;
  /// If true, the NCCL communicators are created in Mesh::open() instead of together with the mesh.
  bool lazy = false;
  /// If true, NCCL calls block. If false, NCCL calls are polled with a deadline.
  bool blocking = false;
  /// The CUDA priority of the stream of the group (GroupCoordinator::stream()). Streams with lower
  /// numbers run first. In an NcclGroup, operations of families with lower numbers are issued
  /// first.
  int priority = 0;
  std::optional<int> min_ctas{};  ///< fewest thread blocks per operation
  /// The most thread blocks per operation. Fewer blocks need less memory.
  std::optional<int> max_ctas{};
  std::optional<int> cga_cluster_size{};  ///< 0 to 8; see NCCL
  std::optional<int> traffic_class{};     ///< traffic class of the network (NCCL 2.26)
  /// The timeout, in seconds, of waits for operations of this family. It applies to Work::wait, to
  /// waits for streams, and to NCCL calls that are in progress. If it is not set, the timeout of
  /// the mesh applies.
  std::optional<int> timeout{};
  /// The keys of further communicators of the same groups, for work on other streams. See
  /// Mesh::duplicate().
  std::vector<std::string> duplicates{};

  /// Returns whether equal groups of two families with these options can share one communicator.
  [[nodiscard]] RANKMESH_API bool can_share(const GroupOptions& other) const;
  /// Returns the options that differ from the default, for example `ranks_per_id=4,lazy`.
  [[nodiscard]] RANKMESH_API std::string to_string() const;
  friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

}  // namespace rankmesh
