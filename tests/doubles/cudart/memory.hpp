// SPDX-License-Identifier: BSD-3-Clause
// Fake device memory: ordinary memory with a register of what was allocated where.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace fake {

std::size_t device_memory();  // bytes per device: FAKE_CUDA_MEMORY

enum class Place { pageable, pinned, device };

struct Found {
  Place place = Place::pageable;
  int device = -1;
  bool whole = true;  // the asked range ends inside the allocation
  char* base = nullptr;
  std::size_t bytes = 0;  // of the allocation
};

// Looks up [pointer, pointer + bytes).
Found find_memory(const void* pointer, std::size_t bytes);

// Makes or ends an allocation at once, without waiting for streams.
cudaError_t allocate(void** pointer, std::size_t bytes, int device);
cudaError_t release(void* pointer);

struct MemoryCounters {
  long device;
  long pinned;
  long long bytes;
};
MemoryCounters count_memory();

}  // namespace fake
