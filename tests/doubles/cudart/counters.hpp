// SPDX-License-Identifier: BSD-3-Clause
// The parts of FakeCudaCounters that other files keep.
#pragma once

namespace fake {

struct GraphCounters {
  long graphs;
  long execs;
};
GraphCounters count_graphs();

}  // namespace fake
