// SPDX-License-Identifier: BSD-3-Clause
// What FakeNcclCounters is made from.
#pragma once

#include <atomic>

#include "fake_nccl.hpp"

namespace fake {

struct Totals {
  std::atomic<long> unique_ids{0}, inits{0}, splits{0}, shrinks{0}, launches{0}, lone_aborts{0};
  std::atomic<long> largest{0};
  std::atomic<long long> entries{0}, polls{0}, helpers{0};
  std::atomic<long> stuck_ends{0}, overlapping_groups{0};
  std::atomic<long> unsafe_aborts{0}, connections{0}, hanging{0};
  std::atomic<long> threads{0}, registrations{0}, windows{0}, memory{0}, reductions{0};
  std::atomic<long long> calls[fake_calls_end] = {};
};
Totals& totals();

inline void count_thread(int change) { totals().threads += change; }

}  // namespace fake
