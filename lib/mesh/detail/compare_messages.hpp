// SPDX-License-Identifier: BSD-3-Clause
// Messages that nobody has received when a mesh or a group is closed.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>

#include "group/detail/connection.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

using OpenConnections = std::span<const std::shared_ptr<Connection>>;

/// Returns a number whose sum over all ranks, modulo 2^64, is 0 if all messages of these groups
/// were received, and no group is broken. Local.
[[nodiscard]] std::uint64_t balance_of(OpenConnections connections, Rank self);

/// Returns whether a sum of balance_of() says that a group is broken on a rank.
[[nodiscard]] bool counts_broken(std::uint64_t balance);

/// Compares how many messages the ranks have sent and received. Collective over `comm`; blocks.
/// Call it if the sum of balance_of() was not 0, after receives were cancelled.
/// @return The keys of the groups that are broken on a rank, so that messages may be left in their
/// communicators; the same on all ranks.
/// @throws MismatchError with the same text on all ranks. It names the two ends of the first
/// messages that were not received. Groups that are broken on a rank are left out.
[[nodiscard]] std::set<std::uint64_t> compare_messages(OpenConnections connections,
                                                       ControlPlane& control,
                                                       const mpi::CommunicatorView& comm,
                                                       const WaitPoint& point);

}  // namespace rankmesh::detail
