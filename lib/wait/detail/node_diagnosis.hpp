// SPDX-License-Identifier: BSD-3-Clause
// What the records of this node say about a mesh that cannot continue.
#pragma once

#include <cstdint>
#include <string>

#include "node_board.hpp"

namespace rankmesh::detail {

/// What an error says itself.
enum class AlreadySaid : std::uint8_t {
  missing,  ///< The ranks that are missing, and what each of them does.
  circle,   ///< The ranks that wait for each other, and in which calls.
};

/// Diagnoses the ranks of a mesh on this node from their records, as `meshinfo trace` does, for an
/// error that is about to be thrown. The diagnosis is text alone: it ends no call.
/// @return Text to append to the hint of the error: diagnosis_mark and the sentences that the error
///         does not say itself. Empty if there are none, if this rank has no record, or if another
///         error of this rank has a diagnosis, because later errors result from the first one.
/// Local; other ranks need not answer. Takes at most about 0.3 s, usually a few milliseconds. Any
/// thread may call it.
std::string diagnosis_of(const NodeBoard& board, AlreadySaid said) noexcept;

}  // namespace rankmesh::detail
