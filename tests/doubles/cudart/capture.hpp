// SPDX-License-Identifier: BSD-3-Clause
// What a stream capture has recorded so far.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"

namespace fake {

// How much of each stream's recorded work lies before a point.
using Coverage = std::map<CUstream_st*, std::uint64_t>;

struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  std::uint64_t number = 0;
  bool invalid = false;
  cudaGraph_t graph = nullptr;              // what it becomes; the end of the capture owns it
  std::vector<FakeCudaPrepare> operations;  // of all its streams, in the order of the calls
  Coverage recorded;
  std::map<CUstream_st*, Coverage> covers;  // per stream: what it has recorded or waited for

  void add(CUstream_st* stream, FakeCudaPrepare prepare);
  void join(CUstream_st* stream, const Coverage& before);
  bool all_joined() const;
};

// True where the calling thread may not make "potentially unsafe API calls" (CUDA Runtime API,
// cudaThreadExchangeStreamCaptureMode): it has a capture of its own that is not relaxed, or another
// thread captures in global mode, unless the thread's own mode allows it. The capture is spoilt by
// the attempt, as in the real runtime. Among these calls are allocations, and questions to any
// stream or event, captured or not (pytorch#104487, #148594); NCCL makes its own queries in relaxed
// mode (include/comm.h of 2.28.9, lines 705-708).
bool capture_forbids_unsafe_calls();
// The same for questions.
bool capture_forbids_queries();
// True while a stream of the device is captured, in any mode and by any thread: a handle that
// encompasses the stream, such as the device, cannot be waited for (CUDA Programming Guide,
// "Prohibited and Unhandled Operations"). The captures are spoilt by the attempt.
bool capture_forbids_device_wait(int device);

// Memory that a capture allocates belongs to its graph: it lives until the last graph that came of
// the capture is destroyed (CUDA Programming Guide, "Graph Memory Nodes").
void add_graph_memory(Capture& capture, void* pointer, std::shared_ptr<void> memory);
// Notes that a capture frees memory that it, or another graph, has allocated; false for other
// memory ("must therefore be passed the address of a graph allocation": cudaFreeAsync).
bool free_graph_memory(Capture& capture, void* pointer);

}  // namespace fake
