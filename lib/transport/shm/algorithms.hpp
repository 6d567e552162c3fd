// SPDX-License-Identifier: BSD-3-Clause
// The table of all algorithms.
#pragma once

#include <array>
#include <cstddef>

#include "transport/shm/algorithm.hpp"

namespace rankmesh::shm {

/// The algorithms of one operation in the order of choice: the first algorithm that applies to a
/// call carries it. The last algorithm applies to every call, and null pointers follow it.
/// Operations that shared memory does not carry have no algorithm.
using Choices = std::array<const Algorithm*, 4>;

/// The choices of each operation, in the order of `Operation`.
extern const std::array<Choices, operation_count> algorithms;

/// For each operation the algorithm whose fast path run_small() tries; null: none.
extern const std::array<const Algorithm*, operation_count> small_algorithms;

/// Runs an operation that takes a single step, with as few instructions as possible, if no other
/// operation is in progress. Checks for the other members at most `looks` times, and pauses between
/// the checks.
/// @param progress  It is written only if the result is `begun`; then call Engine::advance().
inline Outcome run_small(Engine& engine, Progress& progress, const Call& call, int looks) {
  return small_algorithms[static_cast<std::size_t>(call.operation)]->run_small(engine, progress,
                                                                               call, looks);
}

/// For each operation the algorithm of its v-form; null: it has no v-form.
extern const std::array<const Algorithm*, operation_count> algorithms_of_blocks;

[[nodiscard]] inline const Choices& choices_of(Operation operation) {
  return algorithms[static_cast<std::size_t>(operation)];
}

}  // namespace rankmesh::shm
