// How the communicators of one name are made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The same on every rank. Everything but `duplicates` concerns device memory and is without effect
/// where the mesh has no devices. What is not set is NCCL's own choice; what the loaded NCCL does
/// not know, it ignores.
struct GroupOptions {
  /// The name whose NCCL communicators are split (`ncclCommSplit`) instead of making unique IDs;
  /// every group must lie inside one group of it. Costs a ring all-gather over the parent. Empty:
  /// unique IDs.
  std::string split_from{};
  /// With `split_from`: share the parent's buffers and channels. Saves memory; sharers run one at a
  /// time, and an abort of one can end all. NCCL takes the wish from the parent: where one child
  /// shares, all of that parent do.
  bool share_resources = false;
  /// Above this many ranks a group is bootstrapped with several unique IDs, one per so many ranks
  /// (`ncclCommInitRankScalable`, NCCL 2.23; with an older one ID serves all). 0: always one.
  std::int64_t ranks_per_id = 128;
  /// The NCCL communicators are not made with the mesh but by Mesh::open().
  bool lazy = false;
  /// NCCL calls wait in the call itself instead of being polled with a deadline.
  bool blocking = false;
  /// CUDA priority of the group's own stream (GroupCoordinator::stream()); lower numbers run first.
  /// Within an NcclGroup: operations of names with lower numbers are issued first.
  int priority = 0;
  std::optional<int> min_ctas{};  ///< fewest thread blocks per operation
  std::optional<int> max_ctas{};  ///< most thread blocks per operation; fewer need less memory
  std::optional<int> cga_cluster_size{};  ///< 0 .. 8
  std::optional<int> traffic_class{};     ///< of the network (NCCL 2.26)
  /// Seconds that waits for this name's operations last (Work::wait, waits for streams, NCCL calls
  /// that settle); nothing: the mesh's timeout.
  std::optional<int> timeout{};
  /// Further communicators of the same groups, by key, for work on other streams:
  /// Mesh::duplicate().
  std::vector<std::string> duplicates{};

  /// Whether equal groups of two names with these options can share one communicator.
  [[nodiscard]] RANKMESH_API bool can_share(const GroupOptions& other) const;
  /// `ranks_per_id=4,lazy`: what differs from the default; empty where nothing does.
  [[nodiscard]] RANKMESH_API std::string to_string() const;
  friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

}  // namespace rankmesh
