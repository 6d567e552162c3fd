// SPDX-License-Identifier: BSD-3-Clause
// What doctor measures between nodes.
#pragma once

#include "doctor.hpp"

namespace meshinfo {

// Measures, on the first rank of each node, the clock of the node, and the latency and the
// bandwidth to the first rank of the next node; also resolves the name of that host. Collective
// over the job.
void measure_nodes(rankmesh::report::RankFacts& facts, StepWatch& watch);

}  // namespace meshinfo
