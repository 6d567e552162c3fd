// SPDX-License-Identifier: BSD-3-Clause
// How an operation is carried out on the two levels. A plan is one constant `Plan` in a file of its
// own; plans.cpp lists all of them.
#pragma once

#include "transport/levels/chunk.hpp"
#include "transport/levels/peers.hpp"
#include "transport/shm/algorithm.hpp"

namespace rankmesh::levels {

/// Carries one operation. Each chunk of a call goes through three stages:
///   1. `collect`: a step in the node's shared memory, after which the carriers have what their
///      node contributes;
///   2. `exchange`: the carriers exchange messages with the carriers of the other nodes;
///   3. `spread`: a step in the node's shared memory, after which all members have the result.
/// Every decision of a plan must depend only on values that are the same on all members.
struct Plan {
  Operation operation;
  /// Whether the message has a block for each member, see Chunk.
  bool has_blocks_of_members = false;
  /// Sets the sizes of the scratch memory; null if the operation needs none.
  void (*prepare)(Chunk& chunk) = nullptr;
  /// Returns the step of this node; null if it needs none.
  const shm::Algorithm* (*collect)(const Chunk& chunk) = nullptr;
  /// Does the work of a carrier after the messages of the previous round have arrived, and posts
  /// the messages of this round. Returns whether another round follows.
  bool (*exchange)(Chunk& chunk, int round, PeerMessages& messages) = nullptr;
  const shm::Algorithm* (*spread)(const Chunk& chunk) = nullptr;
};

/// Returns the plan of an operation; null if it has none.
[[nodiscard]] const Plan* plan_of(Operation operation);

}  // namespace rankmesh::levels
