// SPDX-License-Identifier: BSD-3-Clause
#include "counters.hpp"

#include "device.hpp"
#include "event.hpp"
#include "kernel.hpp"
#include "memory.hpp"
#include "pool.hpp"
#include "stream.hpp"

using namespace fake;

extern "C" void fake_cuda_counters(FakeCudaCounters* counters) {
  const MemoryCounters memory = count_memory();
  const GraphCounters graphs = count_graphs();
  *counters = FakeCudaCounters{
      .streams = live_streams(),
      .events = live_events(),
      .allocations = memory.device,
      .pinned = memory.pinned,
      .bytes = memory.bytes,
      .graphs = graphs.graphs,
      .graph_execs = graphs.execs,
      .threads = live_threads(),
      .operations = operations_done(),
      .wrong_device = wrong_device_uses(),
      .device_waits = implicit_waits(),
      .late_loads = late_loads(),
      .pool_growths = pool_growths(),
      .blocks = launched_blocks(),
  };
}
