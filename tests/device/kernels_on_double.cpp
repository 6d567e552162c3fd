// SPDX-License-Identifier: BSD-3-Clause
// The kernels and their launchers, compiled for the CPU and launched on the CPU double: the threads
// of a launch run one after the other. No kernel of rankmesh lets its threads wait for each other.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <utility>

#include "fake_cuda.hpp"

namespace {

thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

float __fmul_rn(float a, float b) { return a * b; }
float __fadd_rn(float a, float b) { return a + b; }
double __dmul_rn(double a, double b) { return a * b; }
double __dadd_rn(double a, double b) { return a + b; }

// The form of cudaLaunchKernelExC that nvcc offers.
template <class Work>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Work),
                               const Work& work) {
  const auto run_threads = [grid = config->gridDim, block = config->blockDim, kernel, work] {
    gridDim = grid;
    blockDim = block;
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
        for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
          for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) kernel(work);
  };
  return fake_cuda_launch(reinterpret_cast<const void*>(kernel), config, run_threads);
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-include)
#include "device/kernels/move_pieces.cu"
#include "exchange/kernels/expert_rows.cu"
#include "exchange/kernels/move_rows.cu"
// NOLINTEND(bugprone-suspicious-include)

namespace rankmesh::device {

// A test sets the variable to take the paths of a build without nvcc.
bool has_kernels() noexcept { return std::getenv("RANKMESH_TEST_NO_KERNELS") == nullptr; }

}  // namespace rankmesh::device
