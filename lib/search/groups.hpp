// SPDX-License-Identifier: BSD-3-Clause
// Which of many candidates are worth reading.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "search/search.hpp"

namespace rankmesh::search {

/// The best settings of one mesh, and its group: times in a group differ by less than `same_time`.
struct GroupedCandidate {
  Candidate candidate;
  std::size_t group = 1;
};

/// Returns the best meshes. In a group, those that fit come first, and then those that take the
/// least memory; a mesh has its settings with the least memory in its best group.
/// @param candidates  the fastest first.
[[nodiscard]] std::vector<GroupedCandidate> grouped(std::span<const Candidate> candidates,
                                                    std::size_t most);

/// Returns the least number of devices with which a candidate fits; nothing if 64 times as many do
/// not suffice.
[[nodiscard]] std::optional<std::int64_t> least_devices(const CostModel& cost,
                                                        SearchOptions options);

}  // namespace rankmesh::search
