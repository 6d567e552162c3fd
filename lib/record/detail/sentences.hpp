// SPDX-License-Identifier: BSD-3-Clause
// Parts of the sentences of a diagnosis.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/detail/text.hpp"
#include "record/detail/job.hpp"

namespace rankmesh::record::detail {

/// Returns the ranks of nodes in ascending order, each once.
[[nodiscard]] RankSet ranks_of(const Job& job, std::span<const std::size_t> nodes);

/// Returns ranks with their coordinates, or without them if there are many: `rank 3
/// (dp=1,tp=1)`, `ranks 3 (dp=1,tp=1) and 4 (dp=2,tp=0)`, `ranks 0-7,9 (9 ranks)`.
[[nodiscard]] std::string name_ranks(const Job& job, std::span<const std::size_t> nodes);

/// Returns the name of a call, for example `tp.all_reduce`.
[[nodiscard]] std::string name_of_call(const Record& record, const Call& call);
/// Returns the name and the number of a collective, for example `tp.all_reduce, call 7`. For a
/// message, the text is the same as that of record::to_string().
[[nodiscard]] std::string short_call_text(const Record& record, const Call& call);

/// Returns ranks without their coordinates: `rank 3`, `ranks 3 and 4`, `ranks 0-7,9`.
[[nodiscard]] std::string number_ranks(const Job& job, std::span<const std::size_t> nodes);

/// Returns what a rank does, without its name, for example `runs outside rankmesh since
/// tp.barrier(), call 4`. It contains no times, so that equal texts can be grouped.
/// @param blocked    the call that the rank is in, or null.
/// @param is_plural  the text follows the names of several ranks.
/// @param process    the state of their processes, if it is not the same for all of them.
[[nodiscard]] std::string doing(const Record& record, const Call* blocked, bool is_plural = false,
                                std::optional<Process> process = std::nullopt);

/// Returns the time that belongs to doing(), for example `, which ended 12.3 s ago`. Empty if the
/// times of some nodes are not known.
[[nodiscard]] std::string since_text(const Job& job, std::span<const std::size_t> nodes,
                                     bool is_in_call);

/// Returns the last mark of the nodes, for example `; the last mark is "step 12"`. Empty if it is
/// not the same on all of them.
[[nodiscard]] std::string mark_text(const Job& job, std::span<const std::size_t> nodes);

/// Returns the text with a capital letter at its start.
[[nodiscard]] std::string capital(std::string text);

/// Returns a number with its noun: `1 rank` or `12 ranks`.
using rankmesh::detail::count_text;

}  // namespace rankmesh::record::detail
