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

/// Options for the communicators of one family. They must be the same on every rank. All options
/// except `duplicates`, `priority` and `timeout` concern operations on device memory. They have no
/// effect if there are no devices. If an option is not set, NCCL chooses its value. Options that
/// the loaded version of NCCL does not know are ignored.
struct GroupOptions {
  /// The name of the parent family. If it is set, the NCCL communicators of this family are split
  /// from the communicators of the parent family (`ncclCommSplit`), which needs no unique IDs.
  /// Every group must lie inside one group of the parent family. A split costs one ring all-gather
  /// over the communicator of the parent. If the name is empty, the communicators are created with
  /// unique IDs.
  std::string split_from{};
  /// If true, the communicators share the buffers and channels of the parent communicators, which
  /// saves memory. This option needs `split_from`. Communicators that share resources cannot run
  /// operations at the same time, and an abort of one communicator can end all of them. NCCL reads
  /// this option from the parent communicator. Therefore, if one child of a parent shares its
  /// resources, all children of this parent share them.
  bool share_resources = false;
  /// The number of ranks per unique ID. A group that has more ranks uses several unique IDs
  /// (`ncclCommInitRankScalable` in NCCL 2.23; older versions use one ID). If the value is 0, every
  /// group uses one ID.
  std::int64_t ranks_per_id = 128;
  /// If true, the NCCL communicators are created in Mesh::open() instead of together with the mesh.
  bool lazy = false;
  /// If true, calls of NCCL block until NCCL has accepted the operation, and a thread of rankmesh
  /// aborts the communicator if a call exceeds the timeout. If false, calls of NCCL return at once,
  /// and rankmesh polls them until they complete or the timeout passes. In this mode, NCCL starts a
  /// thread for each call (2.23 and later). In both cases the creation of the communicators is
  /// polled. Before NCCL 2.23, calls never block. The variable NCCL_COMM_BLOCKING overrides the
  /// option.
  bool blocking = true;
  /// The CUDA priority of the stream of the group (GroupCoordinator::stream()). Work in streams
  /// with lower numbers runs first. In an NcclGroup, the operations of families with lower numbers
  /// are issued first; on device memory, the operations with the same number form one NCCL group.
  int priority = 0;
  std::optional<int> min_ctas{};  ///< minimum number of thread blocks per operation
  /// The maximum number of thread blocks per operation. Fewer blocks need less memory.
  std::optional<int> max_ctas{};
  std::optional<int> cga_cluster_size{};  ///< 0 to 8; see cgaClusterSize in NCCL's manual
  std::optional<int> traffic_class{};     ///< traffic class of the network (NCCL 2.26)
  /// The policy for thread blocks (CTAPolicy, NCCL 2.27): 0 leaves the number to NCCL, 1 prefers
  /// fewer blocks, and 2 uses copy engines instead of thread blocks where they can do the work. For
  /// all_gather, all_to_all, gather and scatter on symmetric memory within one node, 2 leaves all
  /// multiprocessors to the program. 2 needs NCCL 2.28; with earlier versions it has no effect.
  std::optional<int> cta_policy{};
  std::optional<int> nvls_ctas{};  ///< thread blocks of NVLink SHARP operations (NCCL 2.27)
  /// What the program does with CUDA graphs of the family's operations (graphUsageMode, NCCL 2.29):
  /// 0 means that it captures no graphs, 1 that it has one graph, which never runs at the same time
  /// as other operations, and 2 that it may use graphs in any way. 2 is NCCL's default, and costs
  /// time in each operation. Older versions of NCCL read the environment variable
  /// NCCL_GRAPH_MIXING_SUPPORT instead.
  std::optional<int> graph_usage_mode{};
  /// If it is greater than 0, the warm-up of the communicators also runs the collectives with
  /// larger messages, of up to this number of bytes. NCCL chooses its algorithms by operation and
  /// size. When an algorithm is first used, NCCL connects its ranks, and the hosts wait for each
  /// other. After the warm-up, operations of these sizes use existing connections. The memory of
  /// the warm-up is freed when the mesh is open.
  std::int64_t warm_up_bytes = 0;
  /// The timeout of waits for operations of this family, in seconds. It applies to Work::wait, to
  /// waits for streams, and to NCCL calls that are in progress. If this option is not set, the
  /// timeout of the mesh applies.
  std::optional<int> timeout{};
  /// The keys of additional communicators for the same groups. A program uses them for work on
  /// other streams (see Mesh::duplicate()).
  std::vector<std::string> duplicates{};

  /// Returns whether two families can share the communicators of their equal groups, if one family
  /// has these options and the other family has the options `other`.
  [[nodiscard]] RANKMESH_API bool can_share(const GroupOptions& other) const;
  /// Returns the options that differ from their default values as text, for example
  /// `ranks_per_id=4,lazy`.
  [[nodiscard]] RANKMESH_API std::string to_string() const;
  /// Returns whether all fields are equal.
  friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

}  // namespace rankmesh
