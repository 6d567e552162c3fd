// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the double of libcudart share.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "fake_cuda.hpp"
#include "fork_ranks.hpp"

inline cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  REQUIRE_SAME(cudaStreamCreateWithFlags(&stream, flags), 0);
  return stream;
}

inline cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  REQUIRE_SAME(cudaEventCreate(&event), 0);
  return event;
}

inline void push(cudaStream_t stream, std::vector<int>& list, int value) {
  REQUIRE_SAME(fake_cuda_enqueue(stream, [&list, value] { list.push_back(value); }), 0);
}

inline FakeCudaCounters count() {
  FakeCudaCounters counters;
  fake_cuda_counters(&counters);
  return counters;
}
