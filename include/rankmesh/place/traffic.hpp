// SPDX-License-Identifier: BSD-3-Clause
// Computes how many bytes the groups of a mesh send, and how many of them leave the units of
// a machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh {

/// Which members of a group exchange data.
///
/// The comment of each pattern says how many bytes leave the units of a level. There, k is the size
/// of the group, U is the number of units over which the group is spread, and `bytes` is the number
/// of bytes that one rank sends.
enum class Pattern : std::uint8_t {
  /// Each rank sends to the next rank of a ring. The ring visits one unit after the other, as the
  /// rings of NCCL do: U * bytes, or 0 if U is 1.
  ring,
  /// Sums move up a tree, and results move down. Two units are joined by one edge of the tree: (U -
  /// 1) * bytes * k / (k - 1).
  tree,
  /// Each rank sends the same amount to every other rank: bytes / (k - 1) for each ordered pair of
  /// ranks in different units.
  all_to_all,
  /// Each rank exchanges data with its neighbours in the order of the group: 2 * bytes for each
  /// pair of neighbours in different units. The last and the first rank are not neighbours.
  chain,
};

[[nodiscard]] RANKMESH_API std::string_view to_string(Pattern pattern);

/// The bytes that the ranks of one family send in one step.
struct FamilyTraffic {
  std::string name;                 ///< the family
  std::int64_t bytes = 0;           ///< bytes that one rank sends
  Pattern pattern = Pattern::ring;  ///< how the members of a group exchange these bytes
  /// The greatest number of these bytes that leave the node of the rank. There is such a limit, for
  /// example, if a token is sent to at most a few nodes. 0 means no limit. The limit also applies
  /// to the levels above nodes. Only with Pattern::all_to_all.
  std::int64_t most_between_nodes = 0;
};

/// Returns the traffic to assume if no model is known. It depends on the purposes of the families
/// (role_of()). The numbers are relative: tensor 200, expert 100, sharded 30, context 20, data 20,
/// pipeline 1. They have the same proportions as tp, dp and pp of Llama 3 405B with tp=8, pp=16,
/// dp=128. Families with other purposes are left out. If no family has a known purpose, each
/// dimension counts 1.
[[nodiscard]] RANKMESH_API std::vector<FamilyTraffic> usual_traffic(const MeshPlan& plan);

/// Returns the pattern of a family by its purpose: all_to_all for expert, chain for pipeline, ring
/// for the others.
[[nodiscard]] RANKMESH_API Pattern usual_pattern(std::string_view name);

/// Returns the bytes that leave the units of each level in one step, outermost level first, summed
/// over all ranks. Takes O(ranks x families x levels) time. If `slots` is empty and the machine is
/// regular, groups that lie on the units in the same way are counted once.
/// @param slots  the slot of each rank. If it is empty, rank r is in slot r.
/// @throws UnknownName if a name is not the name of a family; UsageError if a rank has no slot, if
/// the sum could exceed 2^62, or if a family with a pattern other than all_to_all has a limit.
[[nodiscard]] RANKMESH_API std::vector<std::int64_t> bytes_per_level(
    const MeshPlan& plan, const Machine& machine, std::span<const FamilyTraffic> traffic,
    std::span<const std::int64_t> slots = {});

/// Returns a lower bound of the time that these bytes need in each level, in seconds. The bound is
/// the number of bytes, divided by the total bandwidth of all slots, plus one latency. It is empty
/// for a level whose bandwidth is not known. The step can be much slower, because the slots do not
/// share the bytes equally, and messages wait for each other and for the computation.
/// @param bytes  the bytes that leave the units of each level (bytes_per_level()).
[[nodiscard]] RANKMESH_API std::vector<std::optional<double>> least_seconds_per_level(
    const Machine& machine, std::span<const std::int64_t> bytes);

}  // namespace rankmesh
