// SPDX-License-Identifier: BSD-3-Clause
// Kernels are host functions. CUDA loads a kernel when it is first needed
// (CUDA_MODULE_LOADING=LAZY, the default since 12.2).
#include <atomic>
#include <mutex>
#include <set>

#include "common/settings.hpp"
#include "device.hpp"
#include "error.hpp"
#include "kernel.hpp"
#include "pool.hpp"
#include "stream.hpp"

using namespace fake;

namespace {

struct Kernels {
  std::mutex mutex;
  std::set<std::pair<int, const void*>> loaded;  // per device
  std::atomic<long long> late{0};
  std::atomic<long long> blocks{0};
};

Kernels& kernels() {
  static Kernels* const made = new Kernels;
  return *made;
}

// "Lazy Loading" in the CUDA Programming Guide: loading a kernel might require the context to be
// synchronised, so a program in which one kernel waits for another can hang. Returns whether the
// kernel had to be loaded.
bool load(const void* kernel) {
  {
    std::lock_guard lock(kernels().mutex);
    if (broken("lazy_loading") || !kernels().loaded.emplace(current_device(), kernel).second)
      return false;
  }
  wait_implicitly(current_device());
  return true;
}

}  // namespace

long long fake::late_loads() { return kernels().late; }
long long fake::launched_blocks() { return kernels().blocks; }

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (attributes == nullptr) return record(cudaErrorInvalidValue);
  if (kernel == nullptr) return record(cudaErrorInvalidDeviceFunction);
  load(kernel);
  *attributes = cudaFuncAttributes{};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  return cudaSuccess;
}

cudaError_t fake_cuda_launch(const void* kernel, const cudaLaunchConfig_t* config,
                             FakeCudaWork work) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (kernel == nullptr) return record(cudaErrorInvalidDeviceFunction);
  const dim3 grid = config->gridDim, block = config->blockDim;
  const bool is_empty = grid.x * grid.y * grid.z == 0 || block.x * block.y * block.z == 0;
  if (is_empty || block.x * block.y * block.z > 1024 || grid.y > 65535 || grid.z > 65535)
    return record(cudaErrorInvalidConfiguration);
  if (load(kernel)) ++kernels().late;
  kernels().blocks += static_cast<long long>(grid.x) * grid.y * grid.z;
  return record(submit(config->stream, [work = std::move(work)] { return work; }));
}

}  // extern "C"
