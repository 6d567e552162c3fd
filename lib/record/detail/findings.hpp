// SPDX-License-Identifier: BSD-3-Clause
// The parts of diagnose(), one for each kind of finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "record/detail/job.hpp"
#include "record/detail/messages.hpp"
#include "record/detail/wait_graph.hpp"
#include "record/diagnosis.hpp"

namespace rankmesh::record::detail {

/// The members that have made the same call.
struct Camp {
  const Call* call = nullptr;
  std::vector<std::size_t> nodes;
};

/// The first collective of a group in which members differ.
struct Difference {
  std::size_t group = 0;  ///< Index in Job::groups().
  std::uint64_t number = 0;
  std::vector<Camp> camps;  ///< The largest one first.
};

/// Compares the collectives of all groups.
[[nodiscard]] std::vector<Difference> differences_of(const Job& job);

/// What all findings are made from.
struct Evidence {
  const Job& job;
  const Messages& messages;
  const WaitGraph& graph;
};

/// Whether a node belongs to a circle of waits.
enum class Circle : std::uint8_t { no, possible, certain };

[[nodiscard]] std::vector<Finding> different_calls(const Job& job,
                                                   const std::vector<Difference>& differences);
/// @param in_circle  is set for the nodes of all circles.
[[nodiscard]] std::vector<Finding> circles_of_waits(const Evidence& evidence,
                                                    std::vector<Circle>& in_circle);
/// Returns at most one finding: calls of NCCL that are not complete on two ranks, which have issued
/// them in different orders.
[[nodiscard]] std::vector<Finding> crossed_device_calls(const Job& job);
[[nodiscard]] std::vector<Finding> message_findings(const Evidence& evidence,
                                                    const std::vector<Circle>& in_circle);
/// Findings of the kinds `waits` and `missing_call`.
[[nodiscard]] std::vector<Finding> chains_of_waits(const Evidence& evidence,
                                                   const std::vector<Circle>& in_circle);
/// Members of a group that have closed the mesh after different numbers of calls.
[[nodiscard]] std::vector<Finding> unequal_ends(const Job& job);
[[nodiscard]] std::vector<Finding> missing_records(const Evidence& evidence);

/// Returns the call that a node is in, or null.
[[nodiscard]] const Call* blocked_call(const Evidence& evidence, std::size_t node);
/// Returns the call or the activity in which a node waits, for example `tp.barrier(), call 4`.
[[nodiscard]] std::string wait_text(const Evidence& evidence, std::size_t node);

/// Returns how many calls the members have made of each group in whose collectives nodes wait, if
/// the numbers differ: ` Ranks 0-2 have made 12 calls of dp, and rank 3 has made 11.`
[[nodiscard]] std::string counts_text(const Evidence& evidence, std::span<const std::size_t> nodes);

/// Returns which ranks wait for ranks that themselves wait, for example ` In turn, rank 0 waits for
/// rank 2 in tp.barrier(), call 4.`
/// @param direct  the number of waiters that come first and are left out.
[[nodiscard]] std::string indirect_text(const Evidence& evidence, const WaitGraph::Waiters& waiters,
                                        std::size_t direct);

/// The most findings of one kind.
inline constexpr std::size_t most_findings = 32;
/// Removes all but the first findings, and says in the last one how many there were.
void shorten(std::vector<Finding>& findings);

}  // namespace rankmesh::record::detail
