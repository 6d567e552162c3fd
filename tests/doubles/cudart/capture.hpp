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

// True where the calling thread may not make calls that could disturb a capture; the capture
// is spoilt by the attempt, as in the real runtime.
bool capture_forbids_unsafe_calls();

}  // namespace fake
