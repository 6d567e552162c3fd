// SPDX-License-Identifier: BSD-3-Clause
// Counts the calls of the CUDA runtime, whoever makes them. This program defines the functions that
// rankmesh uses, so that the dynamic linker finds them before those of the library. Each definition
// counts the call and jumps to the function of the library. cudaStreamGetCaptureInfo is left out,
// because the double calls it itself.
#if defined(__x86_64__)

#include <dlfcn.h>

#include <vector>

namespace {

struct Counter {
  const char* name;
  const long long* calls;
};

std::vector<Counter>& counters() {
  static std::vector<Counter> all;
  return all;
}

// Returns the library's function.
void* counted(const char* name, const long long* calls) {
  counters().push_back({name, calls});
  return dlsym(RTLD_NEXT, name);
}

}  // namespace

extern "C" long long count_of_cuda_calls() {
  long long sum = 0;
  for (const Counter& counter : counters()) sum += __atomic_load_n(counter.calls, __ATOMIC_RELAXED);
  return sum;
}

// The jump changes no register, so the arguments need not be known.
#define COUNTED(name)                                                                      \
  extern "C" {                                                                             \
  __attribute__((visibility("hidden"), used)) void* next_##name = nullptr;                 \
  __attribute__((visibility("hidden"), used)) long long calls_of_##name = 0;               \
  }                                                                                        \
  asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name                        \
      ":\n  lock incq calls_of_" #name "(%rip)\n  jmp *next_" #name "(%rip)\n.size " #name \
      ", . - " #name "\n");                                                                \
  static const bool found_##name = ((next_##name = counted(#name, &calls_of_##name)) != nullptr);

COUNTED(cudaDeviceSynchronize)
COUNTED(cudaEventCreateWithFlags)
COUNTED(cudaEventDestroy)
COUNTED(cudaEventQuery)
COUNTED(cudaEventRecord)
COUNTED(cudaFreeAsync)
COUNTED(cudaGetDevice)
COUNTED(cudaGetLastError)
COUNTED(cudaMallocAsync)
COUNTED(cudaMemcpy2DAsync)
COUNTED(cudaMemcpyAsync)
COUNTED(cudaSetDevice)
COUNTED(cudaStreamIsCapturing)
COUNTED(cudaStreamQuery)
COUNTED(cudaStreamSynchronize)
COUNTED(cudaStreamWaitEvent)

#endif
