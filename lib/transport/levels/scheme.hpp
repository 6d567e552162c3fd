// SPDX-License-Identifier: BSD-3-Clause
// How an operation is carried out on the two levels. A scheme is one constant `Scheme` in a file of
// its own; schemes.cpp lists all of them.
#pragma once

#include <cstdint>

#include "transport/levels/messages.hpp"
#include "transport/levels/piece.hpp"
#include "transport/shm/algorithm.hpp"

namespace rankmesh::levels {

/// The ways in which a call is divided.
enum class Division : std::uint8_t {
  none,    ///< It has no data.
  shares,  ///< Each carrier carries a share of the elements.
  blocks,  ///< Each carrier carries the blocks of some members.
};

/// Carries one operation. Each piece of a call goes through three stages:
///   1. `collect`: a step in the node's shared memory, after which the carriers have what their
///      node contributes;
///   2. `exchange`: the carriers exchange messages with the carriers of the other nodes;
///   3. `spread`: a step in the node's shared memory, after which all members have the result.
/// Every decision of a scheme must depend only on values that are the same on all members.
struct Scheme {
  Operation operation;
  Division division;
  /// Sets the sizes of the scratch memory.
  void (*prepare)(Piece& piece) = nullptr;
  /// Returns the step of this node; null if it needs none. A node with one member never has one.
  const shm::Algorithm* (*collect)(const Piece& piece) = nullptr;
  /// Does the work of a carrier after the messages of the previous round have arrived, and posts
  /// the messages of this round. Returns whether another round follows.
  bool (*exchange)(Piece& piece, int round, Messages& messages) = nullptr;
  const shm::Algorithm* (*spread)(const Piece& piece) = nullptr;
};

/// Returns the scheme of an operation; null if it has none.
[[nodiscard]] const Scheme* scheme_of(Operation operation);

/// Returns the piece that a step in shared memory belongs to.
[[nodiscard]] inline const Piece& piece_of(const shm::Step& step) {
  return static_cast<const Piece&>(step.call);
}
[[nodiscard]] inline const Piece& piece_of(const Call& call) {
  return static_cast<const Piece&>(call);
}

}  // namespace rankmesh::levels
