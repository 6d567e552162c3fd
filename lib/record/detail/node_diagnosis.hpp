// SPDX-License-Identifier: BSD-3-Clause
// What the records of this node say about a mesh that cannot continue.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recorder.hpp"

namespace rankmesh::detail {

/// What an error says itself.
enum class AlreadySaid : std::uint8_t {
  missing,  ///< The ranks that are missing, and what each of them does.
  circle,   ///< The ranks that wait for each other, and in which calls.
};

/// Diagnoses the ranks of a mesh on this node from their records, as `meshinfo trace` does, for an
/// error that is about to be thrown. The diagnosis is text alone: it ends no call.
/// @param own        The record of this rank.
/// @param processes  The processes of the ranks, in this process namespace.
/// @return Text to append to the hint of the error: diagnosis_mark and the sentences that the error
///         does not say itself. Empty if there are none.
/// Local; other ranks need not answer. Takes at most about 0.3 s, usually a few milliseconds. Any
/// thread may call it.
std::string diagnose_node(const Recorder& own, const std::vector<std::int64_t>& processes,
                          AlreadySaid said) noexcept;

}  // namespace rankmesh::detail
