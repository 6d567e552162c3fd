// SPDX-License-Identifier: BSD-3-Clause
// What the CPU double of libcudart exports beside CUDA's own functions: for the double of
// libnccl, for tests that queue "kernels" as host functions, and for tests that count leaks.
// It is a tool of the tests; nothing in the product falls back to it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

// Everything that is alive in this process, and a few totals since the start.
struct FakeCudaCounters {
  long streams;            // created and not destroyed (the default streams not counted)
  long events;             // created and not destroyed
  long allocations;        // device allocations that are alive
  long pinned;             // pinned host allocations and registrations that are alive
  long long bytes;         // device bytes in use, charges included
  long graphs;             // alive
  long graph_execs;        // alive
  long threads;            // worker threads, one per stream that was used
  long long operations;    // total: operations carried out
  long long wrong_device;  // total: uses of a stream, event or communicator of another device
  long long device_waits;  // total: calls that waited for a whole device, cudaDeviceSynchronize not
                           // counted: allocating, freeing, loading a kernel
  long long late_loads;    // total: kernels that were loaded by their first launch
  long long pool_growths;  // total: allocations in stream order that took memory from the device
  long long blocks;        // total: blocks of threads of the kernels that were launched
};

// A queued operation. `prepare` runs in the issuing thread each time the operation is really
// queued (at once, or at each launch of the graph that captured it) and returns the work.
using FakeCudaWork = std::function<void()>;
using FakeCudaPrepare = std::function<FakeCudaWork()>;

extern "C" {

// Queues `work` on `stream` behind what is queued there; returns before it has run. The
// stream must belong to the current device. While the stream is captured, it is recorded.
cudaError_t fake_cuda_enqueue(cudaStream_t stream, FakeCudaWork work);

// The same for work that must know in which order it was queued.
cudaError_t fake_cuda_submit(cudaStream_t stream, FakeCudaPrepare prepare);

// Launches a kernel: `work` runs all of its threads. The address of the kernel tells whether it is
// loaded; the first launch of a kernel loads it unless cudaFuncGetAttributes has, and waits for the
// device before.
cudaError_t fake_cuda_launch(const void* kernel, const cudaLaunchConfig_t* config,
                             FakeCudaWork work);

// The device of a live stream (the default streams: the current device), or -1.
int fake_cuda_stream_device(cudaStream_t stream);

// True where [pointer, pointer + bytes) lies in one live device or pinned allocation.
// `device` (may be null) receives its device, or -1 for pinned memory.
bool fake_cuda_owns(const void* pointer, size_t bytes, int* device);

// Lets the device look fuller (or emptier, bytes < 0), as a library's own buffers do.
void fake_cuda_charge(int device, long long bytes);

// Counts a wrong-device use that the double of libnccl found.
void fake_cuda_note_wrong_device(void);

// Whether this process has a context on a device, which some calls create.
bool fake_cuda_has_context(int device);
// Takes all contexts away; later calls create them again.
void fake_cuda_forget_contexts(void);

// Makes a device current, and returns the one before. Creates no context.
int fake_cuda_exchange_device(int device);

// Frees memory of a device as cuMemUnmap and cuMemRelease do, without waiting for the device. If
// the device has work, which may use the memory, the memory only reads as freed: as 0xA5. False if
// there is no such memory.
bool fake_cuda_unmap(void* pointer);

void fake_cuda_counters(FakeCudaCounters* counters);

// From now on, questions about events and streams return this error, as after a fault of a kernel
// ("CUDA Runtime API", cudaErrorIllegalAddress: any further CUDA work returns the same error).
void fake_cuda_fault(cudaError_t error);

}  // extern "C"
